"""A walk through the page's forms for settings and models, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Call, Say
from everloop.testing.model_server import ModelServer
from tests.gateway.page.walk import Stage, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

NOBODY = "http://127.0.0.1:9/v1"  # where nobody listens: no server of this machine is found
LOCAL = {name: {"api_base": NOBODY} for name in ("ollama", "lmstudio", "llamacpp", "vllm")}


async def open_settings(stage: Stage, tab: str) -> None:
    await stage.page.click(".navlink >> text=Manage")
    if await stage.page.is_visible(".back"):
        await stage.page.click(".back")
    await stage.page.click(f"nav.pages .to:has(span:text-is('{tab}'))")
    await stage.page.wait_for_selector(f"section.body[aria-label='{tab}'] :is(.sheet, .tile)")


async def fill(stage: Stage, key: str, text: str) -> None:
    """Change a setting in its field, and save it."""
    await stage.page.fill(f"[data-key='{key}'] :is(input, textarea)", text)
    await stage.page.click(f"[data-key='{key}'] >> text=Save")


async def test_a_setting_is_changed_and_a_wrong_value_says_why(browser: Any, tmp_path: Path):
    (tmp_path / "config.toml").write_text("# mine\n[agents.defaults]\nmax_tokens = 500 # short\n")
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await open_settings(stage, "All settings")
        await page.fill("[aria-label='Filter settings']", "max_tokens")
        shown = await stage.texts(".setting code")
        await fill(stage, "agents.defaults.max_tokens", "-3")
        wrong = await page.inner_text("[data-key='agents.defaults.max_tokens'] .wrong:not(:empty)")
        await fill(stage, "agents.defaults.max_tokens", "700")
        await page.wait_for_selector(".toast:has-text('Saved in config.toml')")
        await page.wait_for_selector("[data-key='agents.defaults.max_tokens'] .origin:has-text('config.toml, line 3')")
        value = await page.input_value("[data-key='agents.defaults.max_tokens'] input")
        await page.fill("[aria-label='Filter settings']", "steering")
        await page.select_option("[data-key='agents.defaults.steering'] select", "queue")
        await page.click("[data-key='agents.defaults.steering'] >> text=Save")
        later = await page.inner_text(".callout")
        await page.fill("[aria-label='Filter settings']", "gateway.port")
        fixed = await page.is_disabled("[data-key='gateway.port'] input")
    assert (shown, value, fixed) == (["agents.defaults.max_tokens"], "700", True)
    assert wrong == "agents.defaults.max_tokens must be a whole number of at least 1."
    assert later == "In force after the gateway is started again: agents.defaults.steering"
    assert (tmp_path / "config.toml").read_text() == (
        '# mine\n[agents.defaults]\nmax_tokens = 700 # short\nsteering = "queue"\n'
    )


async def test_of_two_pages_the_second_is_told_that_something_has_changed(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await open_settings(stage, "All settings")
        await page.fill("[aria-label='Filter settings']", "small_model")
        (tmp_path / "config.toml").write_text("[agents.defaults]\nsmall_model = 'by hand'\n")
        await fill(stage, "agents.defaults.small_model", "by page")
        await page.wait_for_selector(".toast.bad:has-text('has been changed meanwhile')")
        await stage.until("document.querySelector('[data-key$=small_model] input').value === 'by hand'")
        await page.fill("[aria-label='Filter settings']", "workspace")
        shown = await page.inner_text("[data-key=workspace] .origin")
        assert (await page.is_disabled("[data-key=workspace] input"), shown) == (
            True,
            "changed in the settings file only",
        )
    assert (tmp_path / "config.toml").read_text() == "[agents.defaults]\nsmall_model = 'by hand'\n"


async def test_without_a_model_one_is_set_up_in_the_page_and_answers_without_a_restart(browser: Any, tmp_path: Path):
    (tmp_path / "config.toml").write_text('[agents.defaults]\nmodel = "mine/good"\n')
    lines = [Say("ready"), Call("add", {"a": 17, "b": 25}), Say("here I am")]
    async with ModelServer(lines) as server, staged(browser, tmp_path, given={}, providers=LOCAL) as stage:
        page = stage.page
        await stage.log_in()
        await page.wait_for_selector(".first .connect")
        told = await page.inner_text(".first .about p")
        why = await page.text_content(".first details p")
        await stage.say("hello")
        failed = await page.inner_text(".said.failed p")
        await page.click(".said.failed >> text=Connect a model")
        await page.wait_for_selector(".callout.bad")
        await page.wait_for_selector(".connect .offered")
        await open_settings(stage, "All settings")
        await page.fill("[aria-label='Add a provider: its name']", "mine")
        await page.fill("[aria-label='Add a provider: api_base']", server.url)
        await page.click("button:has-text('Add a provider')")
        await page.wait_for_selector("[data-key='providers.mine.api_base']")
        await open_settings(stage, "Models")
        await page.click("text=Test the usual model")
        await page.wait_for_selector(".trial .good >> nth=1")
        tried = [each.split(":")[0] for each in await stage.texts(".trial .good")]
        warnings = await page.locator(".callout.bad").count()
        await page.click("text=New conversation")
        await stage.say("hello again")
        await stage.answer("here I am")
    assert told == "Nobody can answer yet. Connect a model, and it does."
    assert failed.startswith(why)
    assert (tried, warnings) == (["answer", "tool call"], 0)


async def test_a_preset_and_a_key_are_kept_and_taken_away(browser: Any, tmp_path: Path):
    key = "sk-canary-0123456789"
    async with ModelServer([]) as server:
        providers = {**LOCAL, "mine": {"api_base": server.url, "model": "good"}}
        async with staged(browser, tmp_path, given={}, providers=providers) as stage:
            page = stage.page
            await stage.log_in()
            await open_settings(stage, "Models")
            await page.fill("[aria-label='Name of the preset']", "quick one")
            await page.fill("[aria-label='Model of the preset']", "mine/small")
            await page.click("text=Add a preset")
            await page.wait_for_selector("[data-key='models.\"quick one\".model']")
            await fill(stage, "agents.defaults.model", "quick one")
            await page.wait_for_selector("[data-key='agents.defaults.model'] .origin:has-text('config.toml')")
            await page.select_option("[aria-label=Provider]", "openai")
            await page.fill("[aria-label=Key]", key)
            await page.click("text=Save key")
            await page.wait_for_selector(".held li:has-text('openai'):has-text('in the vault')")
            written = (tmp_path / "config.toml").read_text()
            shown = await page.content()
            await page.click("[aria-label='Forget the key of openai']")
            await page.click("dialog >> text=Forget >> nth=-1")
            await page.wait_for_selector("[aria-label='Forget the key of openai']", state="detached")
            await page.click("[data-key='agents.defaults.model'] button:has-text('Reset')")
            await page.wait_for_selector("[data-key='agents.defaults.model'] button:has-text('Reset')", state="hidden")
            await page.click("[aria-label='Remove the preset quick one']")
            await page.click("dialog >> text=Remove >> nth=-1")
            await page.wait_for_selector("[aria-label='Remove the preset quick one']", state="detached")
    assert written == '[models."quick one"]\nmodel = "mine/small"\n\n[agents.defaults]\nmodel = "quick one"\n'
    assert key not in shown + written
    assert (tmp_path / "config.toml").read_text() == "\n[agents.defaults]\n"


@pytest.mark.parametrize("tab", ["Models", "Tools", "All settings", "Access"])
async def test_on_a_phone_no_form_is_wider_than_the_screen(browser: Any, tmp_path: Path, tab: str):
    async with staged(browser, tmp_path, 360, 740) as stage:
        await stage.log_in()
        await stage.page.click("[aria-label='Open the menu']")
        await open_settings(stage, tab)
        await stage.page.wait_for_selector("form")
        widest = await stage.page.evaluate(
            "Math.max(...[...document.querySelectorAll('main *')].map((e) => e.scrollWidth))"
        )
    assert widest <= 360


async def test_every_setting_stands_on_a_page_and_has_a_name_in_words(browser: Any, tmp_path: Path):
    (tmp_path / "config.toml").write_text(
        f'[providers.mine]\napi_base = "{NOBODY}"\n[prices."mine/*"]\ninput = 1.0\n[models.quick]\nmodel = "mine/x"\n'
    )
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        shown: dict[str, list[tuple[str, str]]] = {}
        for name in ("models", "behaviour", "tools", "server", "all"):
            await page.goto(f"{stage.url}/#/settings/{name}")
            await page.wait_for_selector(f"nav.pages [aria-current][href='#/settings/{name}']")
            await page.wait_for_selector("section.body .setting")
            shown[name] = await page.eval_on_selector_all(
                "section.body .setting",
                "(all) => all.map((each) => [each.dataset.key, each.querySelector('.label').textContent])",
            )
    keys = {name: [key for key, _ in rows] for name, rows in shown.items()}
    everywhere = [key for name, found in keys.items() if name != "all" for key in found]
    assert sorted(everywhere) == sorted(keys["all"])  # each once
    assert len(everywhere) > 70
    assert [key for rows in shown.values() for key, label in rows if key in label] == []
    assert ("tools.exec.timeout" in keys["tools"], "gateway.port" in keys["server"]) == (True, True)


async def test_on_a_phone_manage_is_a_list_then_a_page_and_back(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path, 390, 800) as stage:
        page = stage.page
        await stage.log_in()
        await page.click("[aria-label='Open the menu']")
        await page.click(".navlink >> text=Manage")
        await page.wait_for_selector("nav.pages:visible")
        groups = await stage.texts("nav.pages h2")
        pages = await stage.texts("nav.pages .to span")
        await page.click("nav.pages .to:has-text('Access')")
        await page.wait_for_selector(".tile:visible")
        hidden, title = await page.is_hidden("nav.pages"), await page.inner_text("h1")
        await page.click(".back")
        await page.wait_for_selector("nav.pages:visible")
        back = await page.is_hidden(".back")
        await page.set_viewport_size({"width": 1300, "height": 800})
        await page.wait_for_selector("nav.pages [aria-current]:has-text('Models')")
    assert (groups, hidden, title, back) == (["Agent", "Reach", "House"], True, "Access", True)
    assert pages == [
        "Models",
        "Behaviour",
        "Tools",
        "Skills",
        "MCP servers",
        "Memory",
        "Personas",
        "Schedules",
        "Tasks",
        "Channels",
        "Outbox",
        *HOUSE,
    ]


HOUSE = [
    "People",
    "Access",
    "Attachments",
    "Usage",
    "Audit",
    "Backup",
    "Import",
    "Health",
    "Doctor",
    "Server",
    "All settings",
]


async def test_links_of_before_lead_to_their_pages_and_others_say_so(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        titles = {}
        for place in ("usage", "outbox", "settings/models", "settings/all", "settings/access", "settings"):
            await page.evaluate("document.querySelector('main').firstChild.dataset.before = ''")
            await page.goto(f"{stage.url}/#/{place}")
            await page.wait_for_selector("[data-before]", state="detached")  # what was there is not what will be
            await page.wait_for_selector("section.body > *")
            titles[place] = await page.inner_text("h1")
        await page.goto(f"{stage.url}/#/settings/nowhere")
        nowhere = await page.inner_text("section.body > .hint")
    assert titles == {
        "usage": "Usage",
        "outbox": "Outbox",
        "settings/models": "Models",
        "settings/all": "All settings",
        "settings/access": "Access",
        "settings": "Models",
    }
    assert nowhere == "There is no page of that name. Choose one from the list."


async def test_the_account_row_has_the_name_and_the_theme_in_three_states(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        name = await page.inner_text(".account .name")
        seen = []
        for _ in range(4):
            button = page.locator(".account [aria-label^='Theme']")
            seen.append(
                (
                    await button.get_attribute("aria-label"),
                    await page.evaluate("document.documentElement.dataset.theme"),
                )
            )
            await button.click()
        await page.reload()
        await page.wait_for_selector(".account [aria-label='Theme: light']")
        await stage.say("send it")
        await page.wait_for_selector(".navlink:has-text('Waiting') .count:text-is('1')")
    system = ("Theme: as the system", "")
    assert (name, seen) == ("owner", [system, ("Theme: light", "light"), ("Theme: dark", "dark"), system])


async def test_a_title_appears_in_the_list_and_above_the_conversation_by_itself(browser: Any, tmp_path: Path):
    def answer(shown: Any) -> Any:
        return Say("Walrus research" if shown.system.startswith("You give a conversation") else "In the Arctic.")

    async with ModelServer(answer, models=("large", "small")) as server:
        providers = {**LOCAL, "mine": {"api_base": server.url}}
        agents = {"defaults": {"model": "mine/large", "small_model": "mine/small", "context_window": 9000}}
        async with staged(browser, tmp_path, given={}, providers=providers, agents=agents) as stage:
            await stage.log_in()
            await stage.say("Where do walruses live?")
            await stage.answer("In the Arctic.")
            await stage.page.wait_for_selector(".item .name:text-is('Walrus research')")
            await stage.page.wait_for_selector("h1.title:text-is('Walrus research')")
            await stage.page.goto(f"{stage.url}/#/settings/usage")
            await stage.page.wait_for_selector(".numbers")
            rows = await stage.texts(".numbers th[scope=row]")
    assert sorted(rows) == ["mine/large", "mine/small (for titles)"]
