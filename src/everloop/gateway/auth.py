"""Who may come in, checked on every request before its body is read.

The contract for handlers (what other files of this room may count on):

- `request["principal"]` is a `Principal` on every route but the public ones (`principal.PUBLIC` and the page's files).
  Its scope has been checked against `principal.NEEDS`; a handler that needs more calls `principal.need(scope)`.
- Raise `answers.Refused(status, code, message)`, or any EverloopError, and the client is told in JSON.
- A request without an Origin passes with `Authorization: Bearer …` and never with a cookie. Browsers send no Origin with
  a GET of the same site, so the page POSTs to `/auth/session` once (cookie and Origin), is given
  `{"user", "role", "scopes", "token"}`, keeps the token in memory and sends it as Bearer with whatever it fetches. The
  WebSocket is opened with the cookie: browsers send an Origin there.
- Coming in: the one-time link is `GET /login?code=…` (sets the cookie, redirects to `/`); `POST /auth/login
  {"password"}`; `POST /auth/logout`; `POST /auth/password {"password", "current"}`.
"""
