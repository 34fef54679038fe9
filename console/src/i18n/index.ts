/** The texts of the interface, in the language of the browser. */
import { clock } from "../state/clock.svelte";
import { de } from "./de";
import { en, type Texts } from "./en";

const isGerman = navigator.languages.find((one) => /^(en|de)\b/.test(one))?.startsWith("de") ?? false;

export const language = isGerman ? "de" : "en";

export const t: Texts = isGerman ? de : en;

/** Returns the name of the key that shortcuts are pressed with. */
export function modifierName(): string {
  return /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘" : t.shortcuts.control;
}

/** The region of the browser decides on the form of dates. */
const locale = navigator.languages.find((one) => one.startsWith(language)) ?? language;

const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" });
const exact = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

/** Returns a time as a list shows it: minutes and hours ago, then the day. */
export function shortTime(time: string): string {
  const date = new Date(time);
  const minutes = Math.round((clock.now - date.getTime()) / 60_000);
  if (minutes >= 0 && minutes < 60) return relative.format(-minutes, "minute");
  if (minutes >= 0 && minutes < 24 * 60) return relative.format(-Math.round(minutes / 60), "hour");
  return (date.getFullYear() === new Date().getFullYear() ? day : dayOfYear).format(date);
}

/** Returns a time with its minute. */
export function exactTime(time: string): string {
  return exact.format(new Date(time));
}

/** Returns a number with at most this many digits behind the decimal mark. */
export function numberText(value: number, digits: number): string {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value);
}
