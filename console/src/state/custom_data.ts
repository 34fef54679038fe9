/** Custom data as a form: the JSON Schema of a group decides the input of each field. */

/** The part of a JSON Schema that a form needs. */
export interface FieldSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  format?: string;
  enum?: unknown[];
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, FieldSchema>;
  required?: string[];
  items?: FieldSchema;
}

export type Values = Record<string, unknown>;

export type Kind = "text" | "longText" | "number" | "integer" | "boolean" | "choice" | "date" | "dateTime" | "url" | "list" | "object" | "json";

/** The length from which a text gets several lines. */
const LONG = 200;

/** Returns the kind of input that can represent each value of a schema, else `json`. */
export function kindOf(schema: FieldSchema): Kind {
  if (schema.enum?.every((value) => typeof value === "string")) return "choice";
  // A field that may be null is empty then.
  const types = [schema.type ?? []].flat().filter((type) => type !== "null");
  const [type] = types;
  if (types.length !== 1) return "json";
  if (type === "string") {
    if (schema.format === "date") return "date";
    if (schema.format === "date-time") return "dateTime";
    if (schema.format === "uri" || schema.format === "url") return "url";
    return schema.maxLength === undefined || schema.maxLength <= LONG ? "text" : "longText";
  }
  if (type === "number" || type === "integer" || type === "boolean") return type;
  if (type === "object" && schema.properties !== undefined) return "object";
  if (type === "array" && schema.items?.type === "string" && schema.items.enum === undefined) return "list";
  return "json";
}

/** Returns true if a value can be shown by an input of this kind. */
export function fits(kind: Kind, value: unknown): boolean {
  if (value === undefined) return true;
  if (kind === "number" || kind === "integer") return typeof value === "number";
  if (kind === "boolean") return typeof value === "boolean";
  if (kind === "list") return Array.isArray(value) && value.every((item) => typeof item === "string" && !item.includes("\n"));
  if (kind === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return kind === "json" || typeof value === "string";
}

/** Returns the fields of custom data, or null if a form would lose a part of it: other JSON than an
 * object, and numbers that JavaScript rounds. */
export function valuesOf(text: string | null): Values | null {
  if (text === null || text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const numbers = text.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d[\d.eE+-]*/g) ?? [];
    return isObject && numbers.every((number) => String(Number(number)) === number) ? (value as Values) : null;
  } catch {
    return null;
  }
}

/** Returns the JSON of fields; null without one. */
export function textOf(values: Values): string | null {
  const text = JSON.stringify(values);
  return text === "{}" ? null : text;
}

/** Merges two changes of custom data, field by field. Returns undefined if both have changed the same
 * field, or if a part is no object. */
export function mergedFields(base: string | null, mine: string | null, theirs: string | null): string | null | undefined {
  const [before, own, other] = [valuesOf(base), valuesOf(mine), valuesOf(theirs)];
  if (before === null || own === null || other === null) return undefined;
  const isSame = (one: unknown, another: unknown) => JSON.stringify(one) === JSON.stringify(another);
  const names = new Set([...Object.keys(other), ...Object.keys(own), ...Object.keys(before)]);
  const merged: [string, unknown][] = [];
  for (const name of names) {
    const isOwn = !isSame(own[name], before[name]);
    if (isOwn && !isSame(other[name], before[name]) && !isSame(own[name], other[name])) return undefined;
    const value = isOwn ? own[name] : other[name];
    if (value !== undefined) merged.push([name, value]);
  }
  return textOf(Object.fromEntries(merged));
}
