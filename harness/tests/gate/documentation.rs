//! Every command of the page for plugin authors.

use std::fs;

use crate::support::{PROGRAM, clean, finish, has, plugin, text_of};

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

#[test]
fn every_command_does_what_the_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::copy(plugin(false), path.join("libmy_plugin.so")).unwrap();
    // The page's waiver is for another engine: it changes nothing here.
    fs::write(path.join("waivers.yaml"), &blocks("yaml")[0]).unwrap();
    let bin = path.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("dnn-assay")).unwrap();
    let plugins = std::path::Path::new(PROGRAM).parent().unwrap().to_owned();
    let mut count = 0;
    for line in blocks("console").iter().flat_map(|block| block.lines()) {
        let command = line
            .strip_prefix("$ ")
            .unwrap_or_else(|| panic!("no command: {line}"));
        let tool = ["valgrind", "rocgdb"]
            .into_iter()
            .find(|tool| command.contains(tool));
        if let Some(tool) = tool.filter(|tool| !has(tool)) {
            println!("skipped: {tool} is not here: {command}");
            continue;
        }
        // The whole smoke suite once is enough.
        let quick = match command.contains("check") || command.contains("claims ") {
            true => format!("{command} --filter 'op=pointwise.add,pointwise.mul'"),
            false => command.to_owned(),
        };
        let search = format!("{}:/usr/bin:/bin", bin.display());
        let ran = finish(
            clean("sh", path)
                .args(["-c", &quick])
                .env("PATH", search)
                .env("LD_LIBRARY_PATH", &plugins),
        );
        assert_eq!(ran.code, Some(0), "{quick}\n{}", ran.text);
        count += 1;
    }
    assert!(count >= 12, "{count} commands");
}

#[test]
fn the_project_of_the_page_is_the_example() {
    assert_eq!(
        blocks("cmake")[0],
        text_of("ci/examples/cmake/CMakeLists.txt")
    );
}

#[test]
fn the_exit_codes_of_the_page_are_those_of_the_program() {
    let text = text_of(PAGE);
    for exit in dnn_assay::exit::Exit::ALL {
        if exit != dnn_assay::exit::Exit::Interrupted {
            assert!(text.contains(&format!("| {} | ", exit.code())), "{exit:?}");
        }
    }
}
