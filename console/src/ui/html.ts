/** A tag as the server renders it: attribute values are in double quotes, and texts have no "<". */
const TAG = /<[a-z][^<>"]*(?:"[^"]*"[^<>"]*)*>/gi;

/** Shows HTML that the server has rendered from a tree. The content security policy forbids styles in
 * attributes, also in a parsed document, so they are renamed first and then set on the elements. */
export function html(text: string): (node: HTMLElement) => void {
  return (node) => {
    // A parsed document is inert: nothing in it loads or runs.
    const renamed = text.replace(TAG, (tag) => tag.replaceAll(' style="', ' data-style="'));
    const { body } = new DOMParser().parseFromString(renamed, "text/html");
    for (const element of body.querySelectorAll<HTMLElement>("[data-style]")) {
      element.style.cssText = element.dataset.style ?? "";
      delete element.dataset.style;
    }
    node.replaceChildren(...body.childNodes);
  };
}
