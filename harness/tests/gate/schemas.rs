//! What others read follows their schemas, which are vendored in `fixtures/schemas`: the recipes
//! those of GitHub and GitLab, the JUnit file that of Jenkins, the configuration our own. A
//! Jenkinsfile is a program and has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rstest::rstest;
use serde_json::Value;

use crate::support::{plugin, run, text_of};

/// What is wrong with a document, by a schema of this repository.
fn faults(schema: &str, document: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&text_of(schema)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = validator.iter_errors(document);
    errors.map(|error| error.to_string()).collect()
}

fn yaml(text: &str) -> Value {
    let value: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
    serde_json::to_value(value).unwrap()
}

#[rstest]
#[case::action("ci/github/action.yml", "github-action", &["runs", "using"])]
#[case::workflow("ci/github/matrix-example.yml", "github-workflow", &["jobs", "test", "steps"])]
#[case::gitlab("ci/gitlab-ci.yml", "gitlab-ci", &["dnn-assay", "artifacts", "when"])]
fn recipes_follow_their_schemas(#[case] path: &str, #[case] schema: &str, #[case] key: &[&str]) {
    let schema = format!("fixtures/schemas/{schema}.json");
    // GitLab's schema lets a hidden job hold anything: it is checked as one that runs.
    let text = text_of(path).replace("\n.dnn-assay:", "\ndnn-assay:");
    let mut document = yaml(&text);
    assert_eq!(faults(&schema, &document), Vec::<String>::new());
    let place = key.iter().fold(&mut document, |node, key| &mut node[*key]);
    assert!(!place.is_null(), "{key:?} is gone");
    *place = Value::from("nonsense");
    assert!(
        !faults(&schema, &document).is_empty(),
        "the schema says nothing of {key:?}"
    );
}

const OWN: &str = "suites/schemas/dnn-assay.schema.json";

/// The reader and the schema for editors agree.
#[rstest]
#[case::least("schema: 1\n", true)]
#[case::whole(
    "schema: 1\nplugins: [lib]\ndevice: host\nenvironment: {A: b}\nsuites: [smoke]\ntraits: [xf32]\nclaims: [c.yaml]\nfloors: {verified: 1, engines: {E: 2}}\n",
    true
)]
#[case::no_schema("plugins: [x]\n", false)]
#[case::later_schema("schema: 2\n", false)]
#[case::typo("schema: 1\npluginz: [x]\n", false)]
#[case::no_device("schema: 1\ndevice: gpu\n", false)]
#[case::no_list("schema: 1\nsuites: smoke\n", false)]
#[case::floor("schema: 1\nfloors: {verified: -1}\n", false)]
#[case::waiver(
    "schema: 1\nwaive: [{filter: op=conv, expect: fail, reason: r, owner: o, link: l, expires: 2027-06-30}]\n",
    true
)]
#[case::finding(
    "schema: 1\nwaive: [{finding: inspect/export/std, expect: finding, reason: r, owner: o, link: l, expires: 2027-06-30}]\n",
    true
)]
#[case::no_owner(
    "schema: 1\nwaive: [{filter: op=conv, expect: fail, reason: r, link: l, expires: 2027-06-30}]\n",
    false
)]
#[case::no_day(
    "schema: 1\nwaive: [{filter: op=conv, expect: fail, reason: r, owner: o, link: l, expires: soon}]\n",
    false
)]
#[case::two_sorts(
    "schema: 1\nwaive: [{filter: op=conv, case: x, expect: fail, reason: r, owner: o, link: l, expires: 2027-06-30}]\n",
    false
)]
fn our_schema_says_what_the_reader_says(#[case] text: &str, #[case] right: bool) {
    let faults = faults(OWN, &yaml(text));
    assert_eq!(faults.is_empty(), right, "{faults:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dnn-assay.yaml");
    fs::write(&path, text).unwrap();
    let read = dnn_assay::config::load(&path);
    assert_eq!(
        read.is_ok(),
        right,
        "{:?}",
        read.err().map(|e| e.to_string())
    );
}

#[test]
fn what_init_writes_follows_our_schema_and_the_program_prints_it() {
    let folder = tempfile::tempdir().unwrap();
    let right = plugin(false).to_str().unwrap();
    run(folder.path(), &["init", right]).expect(0, &[]);
    let text = fs::read_to_string(folder.path().join("dnn-assay.yaml")).unwrap();
    assert_eq!(faults(OWN, &yaml(&text)), Vec::<String>::new());
    assert_eq!(run(folder.path(), &["schema"]).text, text_of(OWN));
}

#[test]
fn the_junit_file_follows_jenkins_schema() {
    let folder = tempfile::tempdir().unwrap();
    let schema = text_of("fixtures/schemas/junit-10.xsd");
    let schema = roxmltree::Document::parse(&schema).unwrap();
    let elements = elements(&schema);
    let faulty = plugin(true).to_str().unwrap();
    run(
        folder.path(),
        &["check", faulty, "--filter", "op=pointwise"],
    )
    .expect(1, &[]);
    let text = fs::read_to_string(folder.path().join("dnn-assay-out/junit.xml")).unwrap();
    for tag in ["<failure", "<skipped", "<system-out", "classname="] {
        assert!(text.contains(tag), "{tag}");
    }
    let document = roxmltree::Document::parse(&text).unwrap();
    assert_eq!(
        breaches(&elements, document.root_element()),
        Vec::<String>::new()
    );
    for (from, to) in [
        ("<testcase ", "<testcase nonsense=\"1\" "),
        ("<failure ", "<failed "),
        (" tests=", " test="),
    ] {
        let broken = text.replace(from, to).replace(
            "</failure>",
            match from {
                "<failure " => "</failed>",
                _ => "</failure>",
            },
        );
        let document = roxmltree::Document::parse(&broken).unwrap();
        assert!(
            !breaches(&elements, document.root_element()).is_empty(),
            "{to}"
        );
    }
}

/// What an element may hold.
#[derive(Default)]
struct Element {
    /// By name: whether it must be there.
    attributes: BTreeMap<String, bool>,
    children: BTreeSet<String>,
}

/// The elements of an XML schema in which, as in Jenkins's, content is a choice or a sequence of
/// one and the order says nothing.
fn elements(schema: &roxmltree::Document<'_>) -> BTreeMap<String, Element> {
    let mut elements = BTreeMap::new();
    for node in schema
        .root_element()
        .children()
        .filter(|n| n.has_tag_name(tag("element")))
    {
        let mut element = Element::default();
        for part in node.descendants() {
            if part.has_tag_name(tag("attribute")) {
                let name = part.attribute("name").unwrap().to_owned();
                let required = part.attribute("use") == Some("required");
                element.attributes.insert(name, required);
            } else if let Some(child) = part.attribute("ref") {
                element.children.insert(child.to_owned());
            }
        }
        elements.insert(node.attribute("name").unwrap().to_owned(), element);
    }
    assert!(elements.len() >= 10, "the schema was not understood");
    elements
}

fn tag(name: &'static str) -> (&'static str, &'static str) {
    ("http://www.w3.org/2001/XMLSchema", name)
}

fn breaches(elements: &BTreeMap<String, Element>, node: roxmltree::Node<'_, '_>) -> Vec<String> {
    let name = node.tag_name().name();
    let Some(element) = elements.get(name) else {
        return vec![format!("there is no element {name}")];
    };
    let mut found = Vec::new();
    for attribute in node.attributes() {
        if !element.attributes.contains_key(attribute.name()) {
            found.push(format!("{name} has no attribute {}", attribute.name()));
        }
    }
    for (attribute, _) in element.attributes.iter().filter(|(_, required)| **required) {
        if !node.has_attribute(attribute.as_str()) {
            found.push(format!("{name} needs {attribute}"));
        }
    }
    for child in node.children().filter(roxmltree::Node::is_element) {
        let child_name = child.tag_name().name();
        if !element.children.contains(child_name) {
            found.push(format!("{name} may not hold {child_name}"));
        }
        found.extend(breaches(elements, child));
    }
    found
}
