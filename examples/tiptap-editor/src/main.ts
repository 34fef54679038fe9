/** The page: signs in, lists pieces, and opens one in the editor. */
import { type Client, createClient, GalleyError } from "@galley/client";
import { find, PieceEditor } from "./editor.ts";

const form = find<HTMLFormElement>("#sign-in");
const list = find("nav ul");

/** The server and the token are kept until the tab is closed. A link may have them after `#`. */
const storage = sessionStorage;
for (const [name, value] of new URLSearchParams(location.hash.slice(1))) storage.setItem(name, value);
history.replaceState(null, "", location.pathname);

function message(error: unknown): string {
  if (error instanceof GalleyError) return error.status === 401 ? "The access token is not valid." : error.message;
  return "The server cannot be reached, or it does not allow this page (the setting cors-origins).";
}

function showSignIn(text = ""): void {
  find("#workspace").hidden = true;
  form.hidden = false;
  find("#sign-in [role=alert]").textContent = text;
}

async function start(url: string, token: string): Promise<void> {
  const galley = createClient({ url, token });
  try {
    await galley.getProfile();
  } catch (error) {
    return showSignIn(message(error));
  }
  storage.setItem("url", url);
  storage.setItem("token", token);
  const editor = new PieceEditor(galley);
  await showList(galley, editor);
  form.hidden = true;
  find("#workspace").hidden = false;
  editor.onSave = () => void showList(galley, editor);
  find("#create").onclick = async () => {
    const [group] = (await galley.listContentGroups({ perPage: 1 }).first()).items;
    if (group === undefined) return alert("The workspace has no content group.");
    const slug = `untitled-${Date.now()}`;
    const fields = { title: "Untitled", slug, tags: [], members: [], contentGroupId: group.id };
    const { id } = await galley.createContentPiece(fields);
    await editor.open(id);
    await showList(galley, editor);
  };
}

/** Shows the pieces that were changed last. */
async function showList(galley: Client, editor: PieceEditor): Promise<void> {
  const page = await galley.listContentPieces({ sort: "-updatedAt", fields: ["title"], perPage: 50 }).first();
  const items = page.items.map(({ id, title }) => {
    const button = document.createElement("button");
    button.textContent = title;
    button.ariaCurrent = String(id === editor.pieceId);
    button.onclick = async () => {
      await editor.open(id);
      await showList(galley, editor);
    };
    const item = document.createElement("li");
    item.append(button);
    return item;
  });
  list.replaceChildren(...items);
}

form.onsubmit = (event) => {
  event.preventDefault();
  const { url, token } = Object.fromEntries(new FormData(form)) as Record<"url" | "token", string>;
  void start(url, token);
};

const url = storage.getItem("url");
const token = storage.getItem("token");
if (url && token) void start(url, token);
else showSignIn();
