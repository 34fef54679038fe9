/** Addresses as people type them. */

/** File name extensions, which a relative link may end with. */
const FILE = /\.(html?|md|pdf|php|txt|png|jpe?g|gif|svg|webp|zip)$/i;

/** Returns the address that a person means: `example.org` and mail addresses lack their scheme. */
export function completeAddress(text: string): string {
  const host = /^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)*\.\p{L}{2,}(:\d+)?(?=$|[/?#])/u.exec(text)?.[0];
  if (host !== undefined && !(host === text && FILE.test(text))) return `https://${text}`;
  return /^[^\s@/:]+@[^\s@/:]+\.\p{L}{2,}$/u.test(text) ? `mailto:${text}` : text;
}
