"""What Slack calls the emoji that models react with: it takes names alone."""

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "👍": "+1", "👎": "-1", "👀": "eyes", "❤": "heart", "🔥": "fire", "🎉": "tada", "😀": "grinning", "😄": "smile",
    "😁": "grin", "😂": "joy", "🤣": "rolling_on_the_floor_laughing", "😊": "blush", "🙂": "slightly_smiling_face",
    "😉": "wink", "😍": "heart_eyes", "🥰": "smiling_face_with_3_hearts", "😘": "kissing_heart",
    "😎": "sunglasses", "🤔": "thinking_face", "😐": "neutral_face", "😕": "confused", "😢": "cry", "😭": "sob",
    "😡": "rage", "😱": "scream", "🤯": "exploding_head", "😴": "sleeping", "🙄": "face_with_rolling_eyes",
    "😅": "sweat_smile", "😬": "grimacing", "🥳": "partying_face", "🤝": "handshake", "🙏": "pray", "👏": "clap",
    "🙌": "raised_hands", "👋": "wave", "💪": "muscle", "👌": "ok_hand", "✌": "v", "🤞": "crossed_fingers",
    "🤷": "shrug", "🤦": "face_palm", "🫡": "saluting_face", "✅": "white_check_mark",
    "☑": "ballot_box_with_check", "✔": "heavy_check_mark", "❌": "x", "❎": "negative_squared_cross_mark",
    "⚠": "warning", "❗": "exclamation", "❓": "question", "‼": "bangbang", "⛔": "no_entry",
    "🚫": "no_entry_sign", "💯": "100", "⭐": "star", "🌟": "star2", "✨": "sparkles", "💡": "bulb", "🚀": "rocket",
    "🐛": "bug", "🔧": "wrench", "🔨": "hammer", "🔒": "lock", "🔑": "key", "📌": "pushpin", "📎": "paperclip",
    "📝": "memo", "📅": "date", "📈": "chart_with_upwards_trend", "📉": "chart_with_downwards_trend",
    "⏳": "hourglass_flowing_sand", "⌛": "hourglass", "⏰": "alarm_clock", "☕": "coffee", "🍕": "pizza",
    "🎂": "birthday", "🎁": "gift", "🏆": "trophy", "🤖": "robot_face", "💬": "speech_balloon", "🔔": "bell",
    "📣": "mega", "🔁": "repeat", "🆗": "ok", "🆕": "new", "💔": "broken_heart", "💙": "blue_heart",
    "💚": "green_heart", "💛": "yellow_heart", "💜": "purple_heart", "🧡": "orange_heart", "🖤": "black_heart",
    "👇": "point_down", "👆": "point_up_2", "👉": "point_right", "👈": "point_left", "🫶": "heart_hands",
    "😇": "innocent", "🤗": "hugging_face", "🤓": "nerd_face", "💩": "hankey", "👻": "ghost", "🎯": "dart",
}  # fmt: skip
