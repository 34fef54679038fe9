/** The permissions of the signed-in person in the open workspace. The server checks them; the console
 * leaves out what it would reject. */
import type { components } from "../../generated/schema";

type Permission = components["schemas"]["Role"]["permissions"][number];

const own = $state<{ names: readonly string[] }>({ names: [] });

export function usePermissions(names: readonly string[]): void {
  own.names = names;
}

/** Returns true if the person has the permission. A write permission includes that to read. */
export function can(permission: Permission): boolean {
  return own.names.includes(permission) || own.names.includes(permission.replace(":read", ":write"));
}
