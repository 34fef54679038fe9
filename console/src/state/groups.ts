/** The tree of groups. */
import type { Group } from "../api/client";

/** Returns the groups with the names of those above them, sorted. */
export function groupPaths(groups: Group[]): { id: string; path: string }[] {
  const names = new Map(groups.map((group) => [group.id, group.name]));
  const path = (group: Group) => [...group.ancestors.map((id) => names.get(id) ?? ""), group.name].filter((name) => name !== "").join(" / ");
  return groups.map((group) => ({ id: group.id, path: path(group) })).sort((one, other) => one.path.localeCompare(other.path));
}
