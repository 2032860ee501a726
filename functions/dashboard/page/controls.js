// Buttons that change the world which the page shows, in a program that has such, as feedscale demo does.

const CONTROLS_EVERY = 5_000; // ms: they are in the terminal, too

// askControls asks for the faults, or switches one, and shows them.
async function askControls(path, method) {
  const headers = key ? { 'x-functions-key': key } : {};
  let answer;
  try {
    answer = await fetch(beside + 'controls' + path, { method, headers, cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer', signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    return; // the page says that the server does not answer
  }
  if (answer.ok) showControls(await answer.json());
}

function showControls({ faults, watch }) {
  const section = at('controls');
  section.hidden = false;
  if (!section.children.length) {
    section.append(...faults.map((f) => {
      const button = el('button', { type: 'button', className: 'plain', 'data-fault': f.name });
      button.addEventListener('click', () => askControls('/' + f.name + '?on=' + (button.dataset.on !== 'true'), 'POST'));
      return button;
    }), el('p', { id: 'watch', role: 'status' }));
  }
  for (const f of faults) {
    const button = section.querySelector('[data-fault=' + f.name + ']');
    button.dataset.on = f.on;
    put(button, f.label);
  }
  put(at('watch'), watch ? 'Watch ' + watch : 'Press one, and this line says what to watch.');
}

setInterval(() => document.hidden || askControls('', 'GET'), CONTROLS_EVERY);
askControls('', 'GET');
