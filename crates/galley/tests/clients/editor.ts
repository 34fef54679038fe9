/** An editor as the guide has it. */
import { createClient } from "@galley/client";
import { contentOf, galleyExtensions } from "@galley/tiptap";
import { Editor } from "@tiptap/core";
declare const url: string, token: string, id: string;
const galley = createClient({ url, token });
const piece = await galley.getContentPiece({ id, content: true });
const editor = new Editor({
  element: document.querySelector("#editor"),
  extensions: galleyExtensions(),
  content: piece.content,
  enableContentCheck: true,
});
export async function save() {
  await galley.updateContentPiece({ id, content: contentOf(editor) }, { ifMatch: piece });
}
