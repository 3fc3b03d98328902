// What each setting is called: the words that people search for. Under <name> stands a preset, a provider, a pattern.

import { spoken } from "./say.js";

export const labels = spoken({
  "agents.defaults.model": "Usual model", "agents.defaults.fallbacks": "Fallback models", "agents.defaults.small_model": "Small model for summaries and titles",
  "agents.defaults.titles": "Generate conversation titles", "agents.defaults.embedding_model": "Embedding model", "agents.defaults.system_prompt": "System prompt",
  "agents.defaults.max_tokens": "Maximum answer length (tokens)", "agents.defaults.temperature": "Temperature", "agents.defaults.top_p": "Top P",
  "agents.defaults.reasoning_effort": "Reasoning effort", "agents.defaults.max_tool_iterations": "Maximum steps per turn", "agents.defaults.context_window": "Context window (tokens)",
  "agents.defaults.steering": "Messages while it works", "agents.defaults.max_message_chars": "Longest message (characters)", "agents.defaults.tool_result_max_chars": "Longest tool result (characters)",
  "agents.profiles.<name>.description": "What the sub-agent is for", "agents.profiles.<name>.prompt": "Words of the sub-agent (prompt)", "agents.profiles.<name>.model": "Model of the sub-agent", "agents.profiles.<name>.persona": "Persona of the sub-agent",
  "agents.profiles.<name>.tools": "Tools of the sub-agent", "agents.profiles.<name>.steps": "Maximum steps per task", "agents.profiles.<name>.budget_tokens": "Tokens per task", "agents.profiles.<name>.budget_money": "Dollars per task",
  "agents.tasks.per_person": "Sub-agents at once, per person", "agents.tasks.at_once": "Sub-agents at once, in all", "agents.tasks.open": "Open tasks per person", "agents.tasks.depth": "Depth of tasks of tasks", "agents.tasks.steps": "Steps per task", "agents.tasks.rounds": "Tasks in a row without a person",
  "agents.max_concurrent_turns": "Turns at the same time", "agents.shutdown_seconds": "Time to finish on shutdown (seconds)", workspace: "Workspace folder",

  "providers.<name>.api_key": "API key", "providers.<name>.api_key_file": "API key file", "providers.<name>.api_base": "API address (base URL)", "providers.<name>.model": "Default model",
  "providers.<name>.headers": "HTTP headers", "providers.<name>.dialect": "API dialect", "providers.<name>.answer_seconds": "Answer timeout (seconds)",
  "providers.embedded.path": "Embedded model: model file (GGUF)", "providers.embedded.threads": "Embedded model: CPU threads",
  "models.<name>.model": "Model", "models.<name>.fallbacks": "Fallback models", "models.<name>.reasoning_effort": "Reasoning effort", "models.<name>.temperature": "Temperature",
  "models.<name>.top_p": "Top P", "models.<name>.max_tokens": "Maximum answer length (tokens)", "models.<name>.context_window": "Context window (tokens)",
  "skills.shared": "Skills that everybody has",
  "personas.<name>.prompt": "Words of the persona (prompt)", "personas.<name>.tools": "Tools of the persona", "personas.<name>.model": "Model of the persona", "personas.<name>.max_tokens": "Maximum answer length (tokens)",
  "personas.<name>.open_to": "May be chosen by", "personas.<name>.places": "Places of the persona",
  "prices.<name>.input": "Price of input", "prices.<name>.output": "Price of output", "prices.<name>.cache_read": "Price of cached input", "prices.<name>.cache_write": "Price of writing the cache",

  "tools.restrict_to_workspace": "Restrict to the workspace", "tools.approvals": "Ask for permission", "tools.policy": "Permission rules", "tools.plugins": "Tool plugins", "tools.disabled": "Disabled tools",
  "tools.web.allow": "Private web addresses allowed", "tools.web.search.engine": "Search engine", "tools.web.search.api_key": "Search API key", "tools.web.search.url": "SearxNG address",
  "tools.exec.timeout": "Command timeout (seconds)", "tools.exec.memory_mb": "Command memory limit (MB)", "tools.exec.processes": "Command process limit", "tools.exec.disk_mb": "Command disk limit (MB)",
  "tools.exec.files": "Command file limit", "tools.exec.env": "Environment variables for commands", "tools.exec.network": "Network access of commands", "tools.exec.unsafe_without_sandbox": "Allow commands without a sandbox",
  "tools.mcp_servers.<name>.command": "MCP server: command", "tools.mcp_servers.<name>.args": "MCP server: arguments", "tools.mcp_servers.<name>.env": "MCP server: environment variables", "tools.mcp_servers.<name>.url": "MCP server: address (URL)", "tools.mcp_servers.<name>.headers": "MCP server: HTTP headers",
  "tools.mcp_servers.<name>.transport": "MCP server: transport", "tools.mcp_servers.<name>.network": "MCP server: network access", "tools.mcp_servers.<name>.workspace": "MCP server: sees the workspace", "tools.mcp_servers.<name>.sandbox": "MCP server: sandbox", "tools.mcp_servers.<name>.package": "MCP server: installed package",
  "tools.mcp_servers.<name>.timeout": "MCP server: call timeout (seconds)", "tools.mcp_servers.<name>.tools": "MCP server: tools that are offered", "tools.mcp_servers.<name>.permission": "MCP server: who may use it", "tools.mcp_servers.<name>.effects": "MCP server: effects of tools", "tools.mcp_servers.<name>.sampling": "MCP server: may ask a model",
  "tools.mcp_servers.<name>.oauth.client_id": "MCP server: OAuth client ID", "tools.mcp_servers.<name>.oauth.client_secret": "MCP server: OAuth client secret", "tools.mcp_servers.<name>.oauth.scopes": "MCP server: OAuth scopes", "tools.mcp_servers.<name>.oauth.issuers": "MCP server: private OAuth issuers", "tools.mcp_servers.<name>.enabled": "MCP server: enabled",

  "store.url": "Database address (PostgreSQL)", "store.lease_seconds": "Take over after silence (seconds)", "net.ca_file": "CA certificates", "net.proxy": "HTTP proxy", "net.record": "Record model calls",
  "users.strangers": "Strangers on channels", "users.guest_tools": "Tools for guests", "users.budgets.guest_tokens": "Tokens of each guest, a month", "users.budgets.guest_money": "Dollars of each guest, a month", "users.budgets.guests_tokens": "Tokens of all guests together, a month", "users.budgets.guests_money": "Dollars of all guests together, a month", "users.budgets.user_tokens": "Tokens of each user, a month", "users.budgets.user_money": "Dollars of each user, a month", "users.budgets.warn_at": "Tell somebody from this share of their budget on", "users.budgets.cheaper_at": "A cheaper model answers from this share on", "users.budgets.cheaper_model": "Cheaper model", "users.budgets.ask": "Who may let a turn go beyond a budget",
  "gateway.host": "Listen address (host)", "gateway.port": "Port", "gateway.allowed_hosts": "Allowed host names", "gateway.allowed_origins": "Allowed origins (CORS)", "gateway.tls_cert": "TLS certificate",
  "gateway.tls_key": "TLS key", "gateway.behind_proxy": "Behind a reverse proxy", "gateway.connections": "Connection limit", "gateway.connections_per_address": "Connections per address",
  "gateway.sockets_per_user": "WebSockets per user", "gateway.bytes_per_user": "File storage per user (older name)", "files.url": "Storage (S3 address)", "files.endpoint": "S3 endpoint", "files.region": "S3 region", "files.access_key": "S3 access key", "files.secret_key": "S3 secret key",
  "files.max_bytes": "Largest file (bytes)", "files.quota": "File storage per person (bytes)", "files.guest_quota": "File storage per guest (bytes)", "files.link_seconds": "Signed links hold for (seconds)", "gateway.request_seconds": "Request timeout (seconds)",
  "agents.defaults.memory_window": "Messages before they are remembered", "memory.enabled": "Remember conversations", "memory.idle_minutes": "Remember after silence of (minutes)", "memory.tokens_per_day": "Tokens a day for remembering, each",
  "heartbeat.enabled": "Look after HEARTBEAT.md", "heartbeat.every": "Minutes between two looks", "heartbeat.again_hours": "Hours until an open line comes up again", "heartbeat.quiet": "Quiet hours", "heartbeat.session": "Where it answers", "heartbeat.people": "Also for other people",
  "terminal.theme": "Colours of the chat at a terminal", "terminal.notify": "Sign that a long turn is over", "terminal.notify_seconds": "Seconds of a long turn", "terminal.title": "Name the terminal's window",
  "backup.folder": "Folder of backups", "backup.every": "Backups by itself", "backup.keep": "Backups that stay", "backup.passphrase": "Passphrase of backups",
  "gateway.mcp_tools": "Tools that MCP clients may call",
  "schedules.timezone": "Time zone of schedules", "schedules.most_per_person": "Schedules per person", "schedules.least_seconds": "Seconds between scheduled turns",
  "voice.model": "Voice message model", "voice.api_base": "Voice server address", "voice.language": "Spoken language", "voice.max_seconds": "Longest voice message (seconds)", "voice.minute_price": "Dollars a minute of speech",
  "telemetry.otlp_endpoint": "OpenTelemetry endpoint", "telemetry.otlp_headers": "OpenTelemetry headers", "telemetry.content": "Send contents with traces",
});
