
const EVERY = 10_000; // between two questions to the server, in ms
const PATIENCE = 30_000; // for one answer

const key = new URLSearchParams(location.search).get('code');
const at = (id) => document.getElementById(id);
const rows = new Map(); // by name of the processor
const open = new Set(); // names whose details are shown
let known = null; // the last answer, and when it came by the clock of this page
let trouble = ''; // why there is no newer one
let asking = false; // an older answer is not to come after a newer one

// el makes an element; what it holds is only ever text or elements.
function el(name, props, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(props ?? {})) k in e ? (e[k] = v) : e.setAttribute(k, v);
  e.append(...children);
  return e;
}

function put(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// now is the server's time, so that a wrong clock here makes nothing look old.
const now = () => Date.parse(known.data.time) + performance.now() - known.came;

async function ask() {
  if (asking) return;
  asking = true;
  try {
    const answer = await fetch('processors', { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE), headers: key ? { 'x-functions-key': key } : {} });
    if (answer.ok) {
      known = { data: await answer.json(), came: performance.now() };
      trouble = '';
    } else {
      trouble = refusal(answer.status, (await answer.json().catch(() => ({}))).detail);
    }
  } catch (e) {
    trouble = e instanceof SyntaxError ? 'The server answers something else than processors.' : 'The server does not answer.';
  }
  asking = false;
  render();
}

// forever asks again and again, while somebody looks.
async function forever() {
  if (!document.hidden) await ask();
  setTimeout(forever, EVERY);
}

function render() {
  tellTime();
  put(at('problem'), trouble ? trouble + (known ? ' Below is what was known before.' : '') : tooOld(known.data.processors, now()));
  at('problem').hidden = at('problem').textContent === '';
  document.body.classList.toggle('away', trouble !== '');
  if (known) showProcessors(known.data.processors);
}

function tellTime() {
  if (known) put(at('live'), (trouble ? 'as of ' : 'updated ') + span((performance.now() - known.came) / 1000) + ' ago');
  else if (trouble) put(at('live'), '');
}

function showProcessors(all) {
  const filter = at('filter').value;
  const shown = all.filter((p) => matches(p, filter)).sort(worstFirst);
  showCounts(all, filter.trim().toLowerCase());
  const loud = all.filter((p) => SEVERITY[p.status] === 'bad').length;
  document.title = (loud ? '(' + loud + ') ' : '') + 'feedscale';

  const focused = document.activeElement;
  const wanted = [];
  for (const p of shown) {
    if (!rows.has(p.name)) rows.set(p.name, makeRow(p.name));
    const row = rows.get(p.name);
    update(row, p);
    wanted.push(row.line, ...(row.details ? [row.details] : []));
  }
  // Only what stands elsewhere is moved: a thousand rows stay where they are.
  const body = at('rows');
  wanted.forEach((e, i) => body.children[i] === e || body.insertBefore(e, body.children[i] ?? null));
  while (body.children.length > wanted.length) body.lastChild.remove();
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });

  at('none').hidden = shown.length > 0;
  put(at('none'), all.length ? 'No processor matches.' : 'No processor is configured.');
}

function showCounts(all, filter) {
  const group = at('counts');
  for (const status of STATUSES) {
    let chip = group.querySelector('[data-status=' + status + ']');
    if (!chip) {
      chip = el('button', { type: 'button', className: SEVERITY[status], 'data-status': status });
      chip.addEventListener('click', () => {
        at('filter').value = chip.ariaPressed === 'true' ? '' : status;
        render();
      });
      group.append(chip);
    }
    const n = all.filter((p) => p.status === status).length;
    put(chip, number(n) + ' ' + status);
    chip.ariaPressed = String(filter === status);
    chip.hidden = n === 0 && filter !== status;
  }
}

function makeRow(name) {
  const button = el('button', { type: 'button' }, name);
  const badge = el('span', { className: 'badge', hidden: true }, 'paused');
  const cell = (label, className, ...children) => el('td', { role: 'cell', className, 'data-label': label }, ...children);
  const cells = {
    name: cell('', 'name', button, badge), status: cell('', 'status', el('span')), lag: cell('lag', 'n'), age: cell('age', 'n'),
    replicas: cell('replicas', 'n'), partitions: cell('partitions', 'n'), charge: cell('RU', 'n'), measured: cell('measured', 'n'), why: cell('', 'why'),
  };
  const line = el('tr', { role: 'row', className: 'line' }, ...Object.values(cells));
  line.addEventListener('click', () => {
    if (getSelection().toString() !== '') return; // somebody copies text
    open.has(name) ? open.delete(name) : open.add(name);
    render();
  });
  return { line, cells, button, badge, details: null, shown: '' };
}

function update(row, p) {
  const { cells } = row;
  put(cells.status.firstChild, p.status);
  cells.status.firstChild.className = SEVERITY[p.status] ?? 'bad';
  row.badge.hidden = !p.paused;
  put(cells.lag, number(p.lag));
  put(cells.age, age(p));
  put(cells.replicas, replicas(p));
  put(cells.partitions, partitions(p));
  put(cells.charge, charge(p));
  put(cells.measured, measured(p, now()));
  put(cells.why, why(p));
  for (const c of Object.values(cells)) c.classList.toggle('unknown', c.textContent.startsWith(UNKNOWN));
  cells.why.classList.toggle('error', p.error !== null);
  row.line.classList.toggle('open', open.has(p.name));
  row.button.ariaExpanded = String(open.has(p.name));

  const content = JSON.stringify(p);
  if (!open.has(p.name)) {
    row.details?.remove();
    row.details = null;
  } else if (!row.details || row.shown !== content) {
    const details = makeDetails(p);
    row.details?.replaceWith(details);
    row.details = details;
    row.shown = content;
  }
}

function makeDetails(p) {
  const facts = [
    ['scaler is told', p.metricValue === null ? UNKNOWN : number(p.metricValue) + (p.active ? ', active' : ', not active')],
    ['last measured', p.polledAt === null ? 'never' : new Date(p.polledAt).toISOString()],
    ['scale events', number(p.sequence)],
    ['requests', number(p.requests) + ' for ' + charge(p) + ' RU'],
  ];
  const parts = [];
  if (p.error !== null) parts.push(el('p', { className: 'error' }, p.error));
  parts.push(el('div', { className: 'columns' },
    el('section', {}, el('h2', {}, 'Why'), p.reasons.length
      ? el('ol', {}, ...p.reasons.map((r) => el('li', {}, el('b', {}, r.step), ' ' + r.why, el('span', { className: 'to' }, ' → ' + number(r.replicas)))))
      : el('p', {}, 'Nothing was decided yet.')),
    el('section', {}, el('h2', {}, 'Facts'), el('dl', {}, ...facts.flatMap(([term, text]) => [el('dt', {}, term), el('dd', {}, text)])))));
  if (p.partitions.length) parts.push(el('h2', {}, 'Partitions'), el('div', { className: 'scroll' }, makePartitions(p.partitions)));
  return el('tr', { role: 'row', className: 'details' }, el('td', { role: 'cell', colSpan: 9 }, ...parts));
}

function makePartitions(partitions) {
  const errors = partitions.some((q) => q.error !== null);
  const head = ['Lease', 'Status', 'Lag', 'Age', 'Owner', ...(errors ? ['Error'] : [])];
  const body = [...partitions].sort(worstFirst).map((q) => el('tr', {},
    el('td', { className: 'lease', title: q.range ? q.range.min + ' to ' + q.range.max : q.lease }, q.lease),
    el('td', { className: 'status' }, el('span', { className: SEVERITY[q.status] ?? 'bad' }, q.status)),
    el('td', { className: q.lag === null ? 'n unknown' : 'n' }, (q.approximate && q.lag !== null ? '~' : '') + number(q.lag)),
    el('td', { className: 'n' }, age(q)),
    el('td', {}, q.owner ?? 'nobody'),
    ...(errors ? [el('td', { className: 'error' }, q.error ?? '')] : [])));
  return el('table', {},
    el('thead', {}, el('tr', {}, ...head.map((h) => el('th', { scope: 'col', className: h === 'Lag' || h === 'Age' ? 'n' : '' }, h)))),
    el('tbody', {}, ...body));
}

at('filter').addEventListener('input', () => known && render());
document.addEventListener('visibilitychange', () => document.hidden || ask());
setInterval(tellTime, 1000);
forever();
