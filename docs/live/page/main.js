// Starts the panels. `live` is for the browser test: what a panel was asked, and the numbers that it shows.

const live = {};

(async () => {
  const engine = await loadEngine();
  const panels = {
    waves: wavesPanel(engine), attention: attentionPanel(engine), rope: ropePanel(engine), alibi: alibiPanel(engine),
    angles: anglesPanel(engine),
  };
  for (const panel of Object.values(panels)) panel.update();

  let width = document.documentElement.clientWidth;
  addEventListener("resize", beforeNextPicture(() => {
    if (width === document.documentElement.clientWidth) return; // a phone's bars come and go
    width = document.documentElement.clientWidth;
    for (const panel of Object.values(panels)) panel.resize();
  }));

  live.settings = (panel) => panels[panel].settings();
  live.numbers = (panel) => panels[panel].numbers();
  document.documentElement.dataset.ready = "";
})().catch((error) => {
  const message = document.getElementById("failure");
  message.hidden = false;
  message.textContent = `The page could not start: ${error.message}`;
});
