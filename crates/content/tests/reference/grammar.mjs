// Documents by number: whatever HTML has, in every place, with mistakes.

const WORDS = ["a", "b", "one two", " ", "  ", "\n", "\t", " x ", "x ", "\u00a0", " \u00a0 ", "é", "日本", "😀", "\r\n",
  "\f", "\u200b", "x\ny", "--", "]]>", "<", "a<b", ">", "\"", "&amp;", "&lt;b&gt;", "&nbsp;", "&#x41;", "&copy",
  "&notit;", "&#0;", "&#x80;"];
const MISTAKES = ["<!-- c -->", "<!>", "<![CDATA[x]]>", "<?x?>", "<!doctype html>", "</", "<a", "<p ", "</p>", "</div>",
  "</b>", "</li>", "</ul>", "</table>", "</a>", "</br>", "</body>", "</html>"];
const INLINE = ["b", "strong", "i", "em", "u", "s", "del", "strike", "code", "a", "mark", "sub", "sup", "span", "font",
  "small", "abbr", "q", "kbd", "label", "cite", "ins", "tt", "big"];
const BLOCK = ["p", "div", "section", "h1", "h2", "h3", "h6", "blockquote", "ul", "ol", "li", "pre", "table", "hr",
  "figure", "article", "address", "dl", "dt", "dd", "form", "fieldset", "details", "center", "aside", "header", "main",
  "nav"];
const ODD = ["script", "style", "noscript", "template", "svg", "option", "textarea", "iframe", "object", "title",
  "head", "body", "html", "frameset", "button", "input", "video", "audio", "picture", "source", "nobr", "ruby", "rt",
  "rp", "xmp", "listing", "marquee", "applet", "caption", "colgroup", "col", "tbody", "thead", "tfoot", "tr", "td", "th",
  "foreignObject", "desc", "image", "keygen", "wbr", "summary", "dialog", "menu", "dir", "param", "embed", "base",
  "link", "meta", "noembed", "noframes", "slot", "custom-el"];
const EMPTY = new Set(["br", "hr", "img", "input", "col", "wbr", "source", "embed", "base", "link", "meta", "param",
  "keygen", "image"]);
const STYLES = ["font-weight:bold", "font-weight:400", "font-weight: 700", "font-weight:bolder", "font-style:italic",
  "font-style:normal", "text-decoration:underline", "text-decoration:line-through", "text-decoration-line: underline",
  "text-decoration: underline line-through", "text-decoration:none", "vertical-align:sub", "vertical-align: super",
  "white-space:pre", "white-space: pre-wrap", "white-space:normal", "background-color:red", "color:blue",
  "display:none", "list-style-type:lower-alpha", "list-style-type:upper-roman", "text-align:center",
  "FONT-WEIGHT:BOLD", "font-weight:bold;font-style:italic", "width:5px", "background-color: rgb(1,2,3)"];
const ANYWHERE = ["hidden", "id=x", "class", "data-type=x", "contenteditable=false", "pm-ignore",
  "data-pm-slice='0 0 []'"];
// By element: how often one is chosen, and from what.
const OWN = {
  a: [[0.9, ["href=x", "href=https://e.org/", "href=/a", "href=#f", "href=mailto:a@b", "href=?q", "href=//h/p",
    "href=HTTP://X/", "href=tel:1", "href=''"]], [0.3, ["target=_blank", "rel=nofollow", "class=k", "title=t", "rel=''"]]],
  img: [[0.9, ["src=a.png", "src=/b.jpg", "src=https://e.org/c.gif"]],
    [0.4, ["alt=x", "title='y z'", "width=10", "height=20%", "alt=''"]]],
  ol: [[0.4, ["start=3", "type=a", "type=I", "start=-1", "start=''"]]],
  ul: [[0.35, ["data-type=taskList"]]],
  li: [[0.35, ["data-type=taskItem", "data-type=taskItem data-checked=true", "data-checked=false",
    "data-type=taskItem data-checked"]]],
  td: [[0.4, ["colspan=2", "rowspan=3", "colwidth=100", "data-colwidth='1,2'", "align=center", "colspan=x",
    "colwidth='10,20' colspan=2"]]],
  code: [[0.5, ["class=language-rust", "class='x language-js'", "class=rust"]]],
  mark: [[0.5, ["data-color=red", "data-color='#abc'", "style='background-color: yellow'"]]],
  input: [[0.7, ["type=checkbox", "type=checkbox checked"]]],
};
OWN.th = OWN.td;

/** What the children of an element mostly are. */
const CHILDREN = {
  ul: ["li"], ol: ["li"], tr: ["td", "th"],
  table: ["tr", "tr", "tbody", "thead", "td", "caption", "colgroup"],
  tbody: ["tr", "td"], thead: ["tr", "th"], tfoot: ["tr"],
};

export function documentOf(number) {
  let state = (Math.imul(number, 2654435761) + 12345) >>> 0 || 1;
  const chance = () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
  const one = (list) => list[Math.floor(chance() * list.length)];
  let room = 3 + Math.floor(chance() * 40);

  const attributes = (name) => {
    const chosen = [];
    if (chance() < 0.25) chosen.push(`style="${one(STYLES)}"`);
    for (const [often, values] of OWN[name] ?? []) if (chance() < often) chosen.push(one(values));
    if (chance() < 0.04) chosen.push(one(ANYWHERE));
    return chosen.map((text) => ` ${text}`).join("");
  };
  const name = (parent) => {
    const usual = CHILDREN[parent];
    if (usual && chance() < 0.65) return one(usual);
    const which = chance();
    if (which < 0.12) return "br";
    if (which < 0.18) return "img";
    return one(which < 0.53 ? INLINE : which < 0.9 ? BLOCK : ODD);
  };
  const node = (depth, parent) => {
    room -= 1;
    if (room < 0 || depth > 9 || chance() < 0.33) return one(WORDS);
    if (chance() < 0.06) return one(MISTAKES);
    const element = name(parent);
    let html = `<${element}${attributes(element)}>`;
    if (EMPTY.has(element)) return html;
    if (element === "pre" && chance() < 0.6) {
      html += `<code${attributes("code")}>${one(["fn a", "x\n  y\n", " z ", "\n\nq", "<b>k</b>"])}</code>`;
    }
    for (let left = Math.floor(chance() * 4.5); left > 0; left -= 1) html += node(depth + 1, element);
    return chance() < 0.9 ? `${html}</${element}>` : html;
  };
  let html = "";
  for (let left = 1 + Math.floor(chance() * 4); left > 0; left -= 1) html += node(0, "");
  return html;
}
