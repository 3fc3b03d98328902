// Numbers and times as people read them.

import { say } from "./say.js";

const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const time = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export const moment = (at) => whole.format(new Date(at * 1000));

/** The time of day; of another day, that day as well. */
export function clock(at) {
  const then = new Date(at * 1000);
  return then.toDateString() === new Date().toDateString() ? time.format(then) : `${day.format(then)}, ${time.format(then)}`;
}

/** How long ago, in as few letters as it takes. */
export function when(at) {
  const minutes = Math.floor((Date.now() / 1000 - at) / 60);
  if (minutes < 1) return say.now;
  if (minutes < 60) return say.minutes(minutes);
  return minutes < 24 * 60 ? say.hours(Math.floor(minutes / 60)) : day.format(new Date(at * 1000));
}

export function group(at) {
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(at * 1000).setHours(0, 0, 0, 0)) / 864e5);
  if (days <= 0) return say.today;
  if (days === 1) return say.yesterday;
  return days < 7 ? say.thisWeek : days < 31 ? say.thisMonth : say.earlier;
}

export function lasted(seconds) {
  if (seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const many = (number, one, more) => `${number} ${number === 1 ? one : more}`;

export function count(number) {
  if (number < 1000) return String(number);
  if (number < 1e6) return `${(number / 1000).toFixed(number < 9950 ? 1 : 0)}k`;
  return `${(number / 1e6).toFixed(number < 9.95e6 ? 1 : 0)}M`;
}

/** A price for a million tokens. */
export const rate = (price) => `$${price < 1 ? Number(price.toFixed(4)) : price.toFixed(2).replace(".00", "")}`;

export function dollars(cost) {
  if (cost === null || cost === undefined) return "";
  if (cost === 0) return "$0";
  return cost < 0.01 ? `$${cost.toFixed(4)}` : `$${cost.toFixed(2)}`;
}
