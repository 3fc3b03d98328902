// What is wrong with the house and what to do about it, and its log while it is written.

import { get, post } from "./api.js";
import { h, toast } from "./dom.js";
import { LiveLog } from "./live-log.js";
import { told } from "./say-doctor.js";
import { told as manage } from "./say-manage.js";

const GRAVE = ["broken", "advice"];

// Where on the page a finding can be looked at, by how its check begins.
const PLACES = [["mcp-", "mcp"], ["model", "models"], ["hosts", "models"], ["channel", "channels"], ["outbox", "outbox"], ["backups", "backup"], ["skills", "skills"],
  ["schedules", "schedules"], ["memory-", "memory"], ["budgets", "people"], ["audit", "audit"], ["tasks", "health"]];

export class DoctorPage {
  constructor() {
    this.shown = h("div.findings", { "aria-live": "polite" });
    this.again = h("button.small", { type: "button", onclick: () => this.load() }, told.again);
    this.mend = h("button.small.primary", { type: "button", hidden: true, onclick: () => this.fix() }, told.fix);
    this.log = new LiveLog();
    this.node = h("div.tab.doctor", {}, h("div.row", {}, this.again, this.mend), this.shown, this.log.node);
    this.load();
  }

  load() { return this.busy(told.looking, async () => this.draw(await get("/api/doctor"))); }

  fix() {
    return this.busy(told.mending, async () => {
      const { mended, now } = await post("/api/doctor/fix");
      this.draw(now, mended);
      toast(told.mended(mended.filter((each) => !each.failed).length));
    });
  }

  async busy(word, work) {
    this.again.disabled = this.mend.disabled = true;
    this.shown.replaceChildren(h("p.hint", {}, word));
    try {
      await work();
    } catch (error) {
      this.shown.replaceChildren(h("p.callout.bad", {}, error.message));
    } finally {
      this.again.disabled = this.mend.disabled = false;
    }
  }

  draw({ verdict, findings }, mended = []) {
    const grave = GRAVE.flatMap((each) => findings.filter((one) => one.verdict === each));
    const others = findings.filter((each) => !GRAVE.includes(each.verdict));
    this.mend.hidden = !findings.some((each) => each.can_fix);
    this.shown.replaceChildren(
      h("p", { class: verdict === "broken" ? "callout bad" : "callout", "data-verdict": verdict }, told.verdicts[verdict](grave.length)),
      ...mended.map((each) => h("p.hint.text", {}, each.failed ? `${each.what} (${each.failed})` : each.what)),
      ...grave.map(finding),
      h("details", {}, h("summary", {}, told.others(others.length)), h("ul.well", {}, others.map(line))));
  }

  close() { this.log.close(); }
}

const finding = (each) => h("article.tile.finding", { "data-check": each.check, "data-verdict": each.verdict },
  h("div.row.spread", {}, h("b", {}, h("code", {}, each.check)), h("span.chip", { class: each.verdict === "broken" ? "chip high" : "chip medium" }, told.words[each.verdict])),
  h("p.text", {}, each.what), each.todo ? h("p.todo", {}, told.todo, " ", h("span.text", {}, each.todo)) : null, placeOf(each.check));

function placeOf(check) {
  const place = PLACES.find(([beginning]) => check.startsWith(beginning))?.[1];
  return place && h("a", { href: `#/settings/${place}` }, told.goTo(manage.pages[place][0]));
}

const line = (each) => h("li", {}, h("code", {}, each.check), ` ${told.words[each.verdict]}: `, h("span.text", {}, each.what));
