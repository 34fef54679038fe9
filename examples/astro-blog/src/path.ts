/** Returns the address of a post by its id or slug. */
export function pathOf(id: string): string {
  return `/${id.split("/").filter(Boolean).map(encodeURIComponent).join("/")}/`;
}
