// What is spoken, as text: recorded here and transcribed by the gateway, or heard by the browser itself.

import { call, get } from "./api.js";
import { told } from "./say-speech.js";

const KINDS = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];
const BITS = 32_000; // a second: enough for speech

/** `by` is "provider" or "browser". `heard` is {level(part), ended()}: how loud it is, from 0 to 1, and that it has ended by itself. */
export const recorder = (by, heard) => by === "browser" ? new Recognized(heard) : new Recorded(heard);

const ways = {
  NotAllowedError: () => told.denied, "not-allowed": () => told.denied, "service-not-allowed": () => told.denied,
  NotFoundError: () => told.noDevice, "audio-capture": () => told.noDevice, network: () => told.network,
};
const failure = (name, why) => new Error(Object.hasOwn(ways, name) ? ways[name]() : told.failed(why));

class Recorded {
  constructor(heard) {
    this.heard = heard;
    this.parts = [];
  }

  async begin() {
    if (!navigator.mediaDevices) throw new Error(told.noMicrophone);
    const { seconds } = await get("/api/speech");
    if (!seconds) throw new Error(told.noProvider);
    try { this.stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } }); } catch (error) { throw failure(error.name, error.message); }
    if (this.thrown) { this.leave(); return; }
    const mimeType = KINDS.find((kind) => MediaRecorder.isTypeSupported(kind));
    this.recorder = new MediaRecorder(this.stream, { mimeType, audioBitsPerSecond: BITS });
    this.recorder.ondataavailable = (event) => this.parts.push(event.data);
    this.recorder.start();
    this.limit = setTimeout(() => this.heard.ended(), seconds * 1000 - 500);
    this.measure();
  }

  measure() {
    this.sound = new AudioContext();
    const analyser = this.sound.createAnalyser();
    this.sound.createMediaStreamSource(this.stream).connect(analyser);
    const wave = new Uint8Array(analyser.fftSize);
    this.measuring = setInterval(() => {
      analyser.getByteTimeDomainData(wave);
      this.heard.level(Math.min(1, Math.max(...wave.map((each) => Math.abs(each - 128))) / 64));
    }, 80);
  }

  async finish() {
    const stopped = new Promise((resolve) => { this.recorder.onstop = resolve; });
    if (this.recorder.state === "inactive") this.leave(); // the microphone was taken out
    else { this.recorder.stop(); await stopped; this.leave(); }
    const recording = new Blob(this.parts, { type: "application/octet-stream" });
    if (!recording.size) return "";
    return (await call("/api/speech/transcribe", { method: "POST", body: recording, headers: { "Content-Type": "application/octet-stream" } })).text;
  }

  cancel() {
    this.thrown = true;
    this.leave();
  }

  /** The microphone is given back, so that the browser no longer shows it. */
  leave() {
    clearTimeout(this.limit);
    clearInterval(this.measuring);
    this.sound?.close();
    this.sound = null;
    for (const track of this.stream?.getTracks() ?? []) track.stop();
  }
}

class Recognized {
  constructor(heard) {
    this.heard = heard;
    this.text = "";
  }

  begin() {
    const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
    if (!Recognition) throw new Error(told.noBrowser);
    this.recognition = new Recognition();
    this.recognition.lang = navigator.language;
    this.recognition.continuous = true;
    this.recognition.onresult = (event) => { this.text = [...event.results].map((result) => result[0].transcript.trim()).join(" "); };
    this.recognition.onerror = (event) => { if (event.error !== "no-speech") this.error = failure(event.error, event.error); };
    this.over = new Promise((resolve) => { this.recognition.onend = () => { resolve(); if (!this.asked) this.heard.ended(); }; });
    this.recognition.start();
  }

  async finish() {
    this.asked = true;
    this.recognition.stop();
    await this.over;
    if (this.error && !this.text) throw this.error;
    return this.text;
  }

  cancel() {
    this.asked = true;
    this.recognition?.abort();
  }
}
