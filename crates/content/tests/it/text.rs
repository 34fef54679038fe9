//! Rendering as plain text.

use crate::support;

#[test]
fn blocks_are_separated_by_blank_lines_and_items_by_newlines() {
    let tree = support::from_html(
        "<h1>Title</h1><p>One <b>two</b><br>three</p><ul><li>a<li>b<ul><li>c</ul></ul>\
         <hr><img src=x alt=Picture><pre>code\n  more\n</pre>\
         <table><tr><th>h<th>i<tr><td>j<td>k</table><blockquote>q</blockquote>",
    );
    assert_eq!(
        tree.to_text(),
        "Title\n\nOne two\nthree\n\na\nb\n\nc\n\nPicture\n\ncode\n  more\n\nh\ti\nj\tk\n\nq\n"
    );
}

#[test]
fn an_empty_document_has_no_text() {
    assert_eq!(support::from_html("").to_text(), "");
    assert_eq!(support::from_html("<hr>").to_text(), "");
}
