// Runs before the first paint, so that a chosen theme never flashes as the other one. `web/src/ui/theme.ts` writes the choice.
const chosen = localStorage.getItem('parley.theme')
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen
