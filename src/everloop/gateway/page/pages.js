// The pages of Manage, and on which of them each setting stands. Another page is another row: its name, which is its
// address and finds its words in say-manage.js, its group, the least role that may look, and what opens it.

import { styled } from "./dom.js";

const ROLES = ["guest", "user", "admin", "owner"];

const settings = (name) => async (at) => new (await import("./fields.js")).SettingsPage(await at.sheet(), at.save, name);

const PAGES = [
  { name: "models", group: "agent", least: "admin", open: async (at) => {
    const [{ ModelsTab }, { ModelsPage }] = await Promise.all([import("./models.js"), import("./fields.js")]);
    return new ModelsPage(await at.sheet(), at.save, ModelsTab);
  } },
  { name: "behaviour", group: "agent", least: "admin", open: settings("behaviour") },
  { name: "tools", group: "agent", least: "admin", open: settings("tools") },
  { name: "skills", group: "agent", least: "user", open: async () => { await styled("skills.css"); return new (await import("./skills.js")).SkillsPage(); } },
  { name: "mcp", group: "agent", least: "admin", open: async (at) => { await styled("mcp.css"); return new (await import("./mcp.js")).McpPage(at.me.role); } },
  { name: "memory", group: "agent", least: "user", open: async () => { await styled("memory.css"); return new (await import("./memory.js")).MemoryPage(); } },
  { name: "personas", group: "agent", least: "admin", open: async (at) => { await styled("personas.css"); return new (await import("./personas.js")).PersonasPage(at.me.role); } },
  { name: "schedules", group: "agent", least: "user", open: async () => { await styled("schedules.css"); return new (await import("./schedules.js")).SchedulesPage(); } },
  { name: "tasks", group: "agent", least: "user", open: async (at) => { await styled("tasks.css"); return new (await import("./tasks.js")).TasksPage(at.house); } },
  { name: "channels", group: "reach", least: "admin", open: async (at) => { await styled("channels.css"); return new (await import("./channels.js")).ChannelsPage(at.me.role); } },
  { name: "outbox", group: "reach", least: "owner", open: async () => { await styled("outbox.css"); return new (await import("./outbox.js")).OutboxPage(); } },
  { name: "people", group: "house", least: "admin", open: async (at) => new (await import("./people.js")).PeoplePage(at.me.role) },
  { name: "access", group: "house", least: "user", open: async (at) => new (await import("./access.js")).AccessTab(at.me) },
  { name: "files", group: "house", least: "user", open: async (at) => { await styled("own-files.css"); return new (await import("./own-files.js")).OwnFilesPage(at.me.role); } },
  { name: "usage", group: "house", least: "user", open: async (at) => new (await import("./usage.js")).UsagePage(at.me.role) },
  { name: "audit", group: "house", least: "owner", open: async () => { await styled("audit.css"); return new (await import("./audit.js")).AuditPage(); } },
  { name: "backup", group: "house", least: "owner", open: async () => new (await import("./backup.js")).BackupPage() },
  { name: "import", group: "house", least: "owner", open: async (at) => { await styled("import.css"); return new (await import("./import.js")).ImportPage(at.house.changed); } },
  { name: "health", group: "house", least: "owner", open: async () => new (await import("./health.js")).HealthPage() },
  { name: "doctor", group: "house", least: "owner", open: async () => { await styled("doctor.css"); return new (await import("./doctor.js")).DoctorPage(); } },
  { name: "server", group: "house", least: "admin", open: settings("server") },
  { name: "all", group: "house", least: "admin", open: async (at) => new (await import("./fields.js")).AllPage(await at.sheet(), at.save) },
];

/** Those that somebody of this role may look at. */
export const pagesFor = (role) => PAGES.filter((page) => ROLES.includes(page.least) && ROLES.indexOf(role) >= ROLES.indexOf(page.least));

/** Whether somebody of this role has tokens for programs. */
export const hasTokens = (role) => ROLES.indexOf(role) >= ROLES.indexOf("admin");

export const isPage = (name) => PAGES.some((page) => page.name === name);

// Of each setting the first row whose beginning fits: the page, and the section of it.
const PLACES = [
  ["agents.defaults.system_prompt", "behaviour", "identity"],
  ["agents.defaults.steering", "behaviour", "turns"],
  ["agents.defaults.max_tool_iterations", "behaviour", "turns"],
  ["agents.defaults.max_message_chars", "behaviour", "turns"],
  ["agents.defaults.tool_result_max_chars", "behaviour", "turns"],
  ["agents.defaults.memory_window", "behaviour", "turns"],
  ["memory.", "behaviour", "turns"],
  ["agents.defaults.", "models", "answers"],
  ["agents.", "behaviour", "turns"],
  ["workspace", "behaviour", "identity"],
  ["backup.", "server", "store"],
  ["models.", "models", "models"],
  ["providers.", "models", "providers"],
  ["voice.", "models", "answers"],
  ["speech.", "models", "answers"],
  ["schedules.", "behaviour", "turns"],
  ["heartbeat.", "behaviour", "turns"],
  ["terminal.", "behaviour", "turns"],
  ["prices.", "models", "prices"],
  ["skills.", "tools", "permissions"],
  ["tools.exec.", "tools", "commands"],
  ["tools.mcp_servers.", "tools", "mcp"],
  ["tools.web.", "tools", "web"],
  ["tools.", "tools", "permissions"],
  ["users.", "server", "users"],
  ["gateway.", "server", "gateway"],
  ["store.", "server", "store"],
  ["net.", "server", "net"],
  ["telemetry.", "server", "telemetry"],
  ["files.", "server", "files"],
];

/** [page, section]; what has no place yet is found under All settings. */
export const placeOf = (key) => PLACES.find(([beginning]) => key.startsWith(beginning))?.slice(1) ?? ["all", ""];
