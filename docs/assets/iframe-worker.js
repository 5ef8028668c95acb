// Browsers start no worker from file://, so that search there runs in a frame without a source instead.
// Both sides send and receive messages as a worker's do. The theme's worker looks for the name IFrameWorker.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.appendChild(frame);
      const inside = (this.inside = frame.contentWindow);
      const arrived = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.postMessage = (data) => setTimeout(arrived, 0, data);
      const load = (address) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          script.src = address;
          script.onload = done;
          script.onerror = () => failed(new Error(`cannot load ${address}`));
          inside.document.documentElement.appendChild(script);
        });
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, address) => before.then(() => load(new URL(address, url).href)), Promise.resolve());
      this.ready = load(url);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
