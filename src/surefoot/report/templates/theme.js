// Light and dark: as the system says, until the button says otherwise.
(() => {
  const root = document.documentElement, button = document.getElementById("theme"), system = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => {
    button.textContent = dark() ? "Light" : "Dark";
    surefoot.redraw();
    surefoot.repaint?.();
  };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; show(); });
  system.addEventListener("change", show);
  button.textContent = dark() ? "Light" : "Dark";
})();
