//! The project's own cases, each an edge of the algorithm, with the reference's results.

use crate::support;

const FOSTERED: &str =
    "the HTML standard puts text between rows before the table, the reference's DOM behind it";
const SPAN: &str = "a colspan is a whole number from 1 to 1,000";

/// Cases in which safety or stability takes precedence over equality, with the reasons.
const KNOWN_DIFFERENCES: &[(&str, &str)] = &[
    (
        "<table>a<tr><td>b</table>",
        "the reference's DOM puts text that stands between rows behind the table, the HTML standard \
         (13.2.6.1, foster parenting) and every browser before it",
    ),
    ("<table>a</table>", FOSTERED),
    ("<table><tr>a<td>b</table>", FOSTERED),
    ("<table>a<tr><td>b</table>c", FOSTERED),
    ("<table><tr><td>a</td></tr>b</table>", FOSTERED),
    (
        "<select><b>a</b></select>",
        "the standard has formatting in a select now, the reference's not",
    ),
    (
        "<ol start=99999999999999999999><li>a</ol>",
        "a number that a script can't hold exactly is none",
    ),
    ("<table><tr><td colspan=0>a</table>", SPAN),
    ("<table><tr><td colspan=-1>a</table>", SPAN),
    ("<table><tr><td colspan=1.5>a</table>", SPAN),
    ("<table><tr><td colspan=\" 3 \">a</table>", SPAN),
    ("<img src=a.png width=100% height=auto>", "a length is a number or a percentage"),
    ("<img src=a.png width=-1 height=1e3>", "a length is a number or a percentage"),
    ("<h1 level=9>a</h1>", "there are six levels"),
    (
        "<table><tr><td colwidth=x>a<td colspan=abc>b<td rowspan=0>c</table>",
        "a colspan that is no number is 1",
    ),
];

/// Returns the ordinary and the malicious cases.
fn cases() -> Vec<support::Case> {
    let files = ["cases.json", "nasty.json"];
    files
        .into_iter()
        .flat_map(|file| support::read_cases(&support::fixtures_dir().join(file)))
        .collect()
}

#[test]
fn our_cases_equal_the_reference() {
    let cases = cases();
    assert!(cases.len() > 500, "only {} cases", cases.len());
    let mut differing = Vec::new();
    for case in &cases {
        let found = support::json(&support::from_html(&case.html));
        let known = KNOWN_DIFFERENCES.iter().any(|(html, _)| *html == case.html);
        assert!(!known || found != case.tree, "{} is no difference any more", case.html);
        if found != case.tree && !known {
            differing.push(format!("{}\n  found    {found}\n  expected {}", case.html, case.tree));
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn our_cases_are_rendered_as_the_reference_renders_them() {
    let cases = cases();
    let mut kept_space = 0;
    for case in &cases {
        let tree = support::from_html(&case.html);
        if support::json(&tree) != case.tree {
            continue;
        }
        let html = tree.to_html();
        // The reference's rendering loses white space that would collapse, the list type "1", and
        // an unreadable width.
        if html.contains("white-space")
            || html.contains("colwidth=\"null\"")
            || html.contains("type=\"1\"")
        {
            kept_space += 1;
            continue;
        }
        assert_eq!(Some(html), case.rendered, "{}", case.html);
    }
    assert!(kept_space * 5 < cases.len(), "{kept_space} of {} deviate", cases.len());
}

#[test]
fn our_cases_survive_html() {
    let cases = cases();
    let differing = support::differing(&cases, |case| {
        let tree = support::from_html(&case.html);
        (support::from_html(&tree.to_html()), tree)
    });
    assert!(differing.is_empty(), "{} differ: {differing:#?}", differing.len());
}
