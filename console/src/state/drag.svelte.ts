/** The pieces or the group that a pointer drags. */
import type { Group, Piece } from "../api/client";

class Drag {
  pieces = $state.raw<Piece[]>([]);
  group = $state.raw<Group | null>(null);

  start(event: DragEvent, what: { pieces?: Piece[]; group?: Group }): void {
    this.pieces = what.pieces ?? [];
    this.group = what.group ?? null;
    // Without data, some browsers start nothing.
    event.dataTransfer?.setData("text/plain", what.group?.name ?? this.pieces.map((piece) => piece.title).join("\n"));
    if (event.dataTransfer !== null) event.dataTransfer.effectAllowed = "move";
  }

  end(): void {
    this.pieces = [];
    this.group = null;
  }
}

export const drag = new Drag();
