//! Every command of the page for plugin authors.

use std::fs;

use libtest_mimic::Trial;

use crate::support::{PROGRAM, clean, finish, plugin, text_of};

pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = [
        ("documentation::commands", commands as fn()),
        (
            "documentation::project",
            the_project_of_the_page_is_the_example,
        ),
        (
            "documentation::exit_codes",
            the_exit_codes_of_the_page_are_those_of_the_program,
        ),
        ("documentation::images", images_are_there_and_small),
        ("documentation::waivers", waivers_of_the_page_read),
    ]
    .map(|(name, test)| crate::trial(name, &[], test))
    .into();
    for tool in TOOLS {
        let name = format!("documentation::commands_with_{tool}");
        let test = move || {
            let count = run_commands(|command| command.contains(tool));
            assert!(count > 0, "the page has no command with {tool}");
            Ok(())
        };
        trials.push(match crate::support::has(tool) {
            true => Trial::test(name, test),
            false => Trial::test(format!("{name} (it is not here)"), test).with_ignored_flag(true),
        });
    }
    trials
}

/// Programs that commands of the page need and a machine may lack.
const TOOLS: [&str; 2] = ["valgrind", "rocgdb"];

const PAGE: &str = "docs/for-plugin-authors.md";

/// Lines of the fenced blocks in a language.
fn blocks(language: &str) -> Vec<String> {
    let text = text_of(PAGE);
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

fn commands() {
    let count = run_commands(|command| !TOOLS.iter().any(|tool| command.contains(tool)));
    assert!(count >= 14, "{count} commands");
}

/// Runs the page's commands that are wanted, in its order, in one folder; gives their number.
fn run_commands(wanted: impl Fn(&str) -> bool) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::copy(plugin(false), path.join("libmy_plugin.so")).unwrap();
    // The page's waivers are for another engine: they change nothing here.
    fs::write(path.join("waivers.yaml"), &blocks("yaml")[0]).unwrap();
    fs::write(path.join("my_plugin.cpp"), crate::support::source(false)).unwrap();
    let map = text_of("plugins-under-test/cpp-example/exports.map");
    fs::write(path.join("exports.map"), map).unwrap();
    fs::write(path.join("engine.toml"), &blocks("toml")[0]).unwrap();
    let bin = path.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("dnn-assay")).unwrap();
    let search = format!("{}:/usr/bin:/bin", bin.display());
    let mut count = 0;
    for line in blocks("console").iter().flat_map(|block| block.lines()) {
        let command = line
            .strip_prefix("$ ")
            .unwrap_or_else(|| panic!("no command: {line}"));
        if !wanted(command) {
            continue;
        }
        // The whole smoke suite once is enough.
        let whole = command.starts_with("dnn-assay check") || command.contains("claims ");
        let quick = match whole {
            true => format!("{command} --filter 'op=pointwise.add,pointwise.mul'"),
            false => command.to_owned(),
        };
        let ran = finish(clean("sh", path).args(["-c", &quick]).env("PATH", &search));
        assert_eq!(ran.code, Some(0), "{quick}\n{}", ran.text);
        count += 1;
    }
    count
}

fn images_are_there_and_small() {
    let text = text_of(PAGE);
    let images = text.split("](images/").skip(1);
    let mut total = 0;
    for image in images.map(|rest| rest.split(')').next().unwrap()) {
        let file = crate::support::repository("docs/images").join(image);
        total += fs::metadata(&file)
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()))
            .len();
    }
    assert!((1..300_000).contains(&total), "{total} bytes of images");
}

fn the_project_of_the_page_is_the_example() {
    assert_eq!(
        blocks("cmake")[0],
        text_of("ci/examples/cmake/CMakeLists.txt")
    );
}

fn the_exit_codes_of_the_page_are_those_of_the_program() {
    let text = text_of(PAGE);
    for exit in dnn_assay::exit::Exit::ALL {
        if exit != dnn_assay::exit::Exit::Interrupted {
            assert!(text.contains(&format!("| {} | ", exit.code())), "{exit:?}");
        }
    }
}

/// Each block of YAML is a file of waivers that reads.
fn waivers_of_the_page_read() {
    let blocks = blocks("yaml");
    assert_eq!(blocks.len(), 2);
    for text in blocks {
        let source = dnn_assay::yaml::Source::new(PAGE, text);
        let read = dnn_assay::gate::read_waivers(&source).map_err(|p| p.to_string());
        assert_eq!(read.map(|expected| expected.waivers.len()), Ok(1));
    }
}
