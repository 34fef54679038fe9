/** The page: signs in, lists pieces, and opens one in the editor. */
import { type Client, createClient } from "@galley/client";
import { PieceEditor, readPiece } from "./editor.ts";
import { find, message } from "./page.ts";

const form = find<HTMLFormElement>("#sign-in");
const button = find<HTMLButtonElement>("#sign-in button");
const alertText = find("#sign-in [role=alert]");
const [urlInput, tokenInput] = ["url", "token"].map((name) => find<HTMLInputElement>(`#sign-in [name=${name}]`)) as [
  HTMLInputElement,
  HTMLInputElement,
];

/** The buttons of the listed pieces, by id. */
const buttons = new Map<string, HTMLButtonElement>();

let current: PieceEditor | null = null;
let requests = 0;

/** Signs in. The server and the token are kept until the tab is closed. */
async function signIn(url: string, token: string): Promise<void> {
  button.disabled = true;
  alertText.textContent = "";
  try {
    const galley = createClient({ url, token });
    await showList(galley);
    sessionStorage.setItem("url", url);
    sessionStorage.setItem("token", token);
    form.hidden = true;
    find("#workspace").hidden = false;
    find("#create").onclick = () => attempt(() => create(galley));
    find("#theirs").onclick = () => attempt(() => open(galley, current?.id ?? "", true));
  } catch (error) {
    form.hidden = false;
    alertText.textContent = `Not signed in: ${message(error)}.`;
  } finally {
    button.disabled = false;
  }
}

async function attempt(action: () => Promise<void>): Promise<void> {
  find("nav [role=alert]").textContent = "";
  try {
    await action();
  } catch (error) {
    find("nav [role=alert]").textContent = `Failed: ${message(error)}.`;
  }
}

/** Shows the pieces that were changed last. */
async function showList(galley: Client): Promise<void> {
  const page = await galley.listContentPieces({ sort: "-updatedAt", fields: ["title"], perPage: 50 }).first();
  buttons.clear();
  const items = page.items.map(({ id, title }) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: title });
    button.onclick = () => attempt(() => open(galley, id));
    buttons.set(id, button);
    const item = document.createElement("li");
    item.append(button);
    return item;
  });
  find("nav ul").replaceChildren(...items);
  markCurrent();
}

function markCurrent(): void {
  for (const [id, button] of buttons) button.ariaCurrent = String(id === current?.id);
}

/** Opens a piece, unless another is chosen meanwhile or edits of the open one are not saved. */
async function open(galley: Client, id: string, discardsEdits = false): Promise<void> {
  const request = ++requests;
  const isFree = async () => discardsEdits || current === null || (await current.save());
  if (!(await isFree())) return;
  const piece = await readPiece(galley, id);
  // Edits go on while the piece is read.
  if (!(await isFree()) || request !== requests) return;
  current?.close();
  find("section").hidden = false;
  current = new PieceEditor(galley, piece, (saved, title) => {
    const button = buttons.get(saved);
    if (button) button.textContent = title;
  });
  markCurrent();
}

async function create(galley: Client): Promise<void> {
  if (current !== null && !(await current.save())) return;
  const [group] = (await galley.listContentGroups({ perPage: 1 }).first()).items;
  if (group === undefined) throw new Error("the workspace has no content group");
  const fields = { title: "Untitled", slug: `untitled-${Date.now()}`, tags: [], members: [], contentGroupId: group.id };
  const { id } = await galley.createContentPiece(fields);
  await open(galley, id);
  await showList(galley);
}

form.onsubmit = (event) => {
  event.preventDefault();
  void signIn(urlInput.value, tokenInput.value);
};
find("#sign-out").onclick = () => {
  sessionStorage.clear();
  location.reload();
};
addEventListener("beforeunload", (event) => {
  if (current !== null && !current.isSaved) event.preventDefault();
});

// A link may fill in the form after `#`. It signs nobody in by itself, as it may be of an attacker.
const given = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname);
const [url, token] = [sessionStorage.getItem("url"), sessionStorage.getItem("token")];
if (given.has("url") && given.has("token")) {
  urlInput.value = given.get("url") ?? "";
  tokenInput.value = given.get("token") ?? "";
  form.hidden = false;
} else if (url !== null && token !== null) {
  void signIn(url, token);
} else {
  form.hidden = false;
}
