// All processors and groups.

const PER_PAGE = 100;
const rows = new Map(); // on this page, by name

// everything is what the list shows: groups among the processors.
const everything = (data) => [...data.processors, ...data.groups];

function showList(data) {
  const all = everything(data);
  const found = sorted(all.filter((p) => matches(p, route.words, route.statuses)), route.sort);
  const last = Math.max(1, Math.ceil(found.length / PER_PAGE));
  const page = Math.min(route.page, last);
  const shown = found.slice((page - 1) * PER_PAGE, page * PER_PAGE);
  showFirst(data);
  showChips(all);
  showHead();
  put(at('caption'), 'Processors and groups, sorted by ' + COLUMNS[route.sort.replace(/^-/, '')].title.toLowerCase());

  const focused = document.activeElement;
  const wanted = shown.map((p) => {
    if (!rows.has(p.name)) rows.set(p.name, makeRow(p.name));
    update(rows.get(p.name), p);
    return rows.get(p.name).line;
  });
  const body = at('rows');
  wanted.forEach((e, i) => body.children[i] === e || body.insertBefore(e, body.children[i] ?? null));
  while (body.children.length > wanted.length) body.lastChild.remove();
  for (const [name, row] of rows) if (!row.line.isConnected) rows.delete(name);
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });

  at('processors').hidden = shown.length === 0;
  at('none').hidden = shown.length > 0;
  put(at('none'), all.length ? 'No processor matches this filter.' : 'No processor is configured.');
  fillPages(at('pages'), 'Processors', page, PER_PAGE, found.length, (target) => {
    go({ ...route, page: target });
    scrollTo(0, 0);
  });
}

// showFirst says first what is wrong: each cause with what to do, else the worst that was found.
function showFirst(data) {
  const said = firstSentences(data);
  show(at('causes'), 'shared', said, () => el('ul', {}, ...said.map((c) => el('li', { className: c.severity },
    ...(c.name ? [el('a', { href: addressOf(c.name), 'data-focus': 'first ' + c.name }, c.name), ': '] : []), el('strong', {}, sentence(c.sentence)), [c.remedy && sentence(c.remedy), c.more].filter((t) => t).map((t) => ' ' + t).join('')))));
}

function showHead() {
  const head = at('head');
  if (!head.children.length) {
    for (const [key, column] of Object.entries(COLUMNS)) {
      const button = el('button', { type: 'button', title: column.help ?? '' }, column.title, el('span', { className: 'arrow', 'aria-hidden': 'true' }));
      button.addEventListener('click', () => go({ ...route, sort: nextSort(route.sort, key), page: 1 }));
      head.append(el('th', { role: 'columnheader', scope: 'col', className: 'col-' + key + (column.number ? ' n' : ''), 'data-key': key }, button));
      for (const sort of key === 'status' || key === 'measured' ? [key] : column.number ? ['-' + key] : [key, '-' + key]) {
        at('sort').append(el('option', { value: sort }, column.title.toLowerCase() + (key === 'status' ? ', worst first' : sort === '-name' ? ', Z to A' : sort.startsWith('-') ? ', most first' : key === 'measured' ? ', oldest first' : '')));
      }
    }
    head.append(el('th', { role: 'columnheader', scope: 'col', className: 'col-trend' }, 'Last hour'), el('th', { role: 'columnheader', scope: 'col', className: 'col-why' }, 'Why'));
  }
  for (const th of head.querySelectorAll('[data-key]')) {
    const direction = route.sort === th.dataset.key ? 'ascending' : route.sort === '-' + th.dataset.key ? 'descending' : 'none';
    th.ariaSort = direction;
    put(th.querySelector('.arrow'), { ascending: ' ↑', descending: ' ↓', none: '' }[direction]);
  }
  at('sort').value = route.sort;
}

// showChips counts the statuses, each a button that filters by it.
function showChips(all) {
  const counts = {};
  for (const p of all) counts[p.status] = (counts[p.status] ?? 0) + 1;
  const group = at('chips');
  for (const status of new Set([...STATUSES, ...Object.keys(counts), ...route.statuses])) {
    let chip = group.querySelector('[data-status="' + CSS.escape(status) + '"]');
    if (!chip) {
      chip = el('button', { type: 'button', className: 'chip ' + severity(status), 'data-status': status },
        el('span', { className: 'sign', 'aria-hidden': 'true' }, SEVERITIES[severity(status)].sign + ' '), el('span'));
      chip.addEventListener('click', () => {
        const statuses = route.statuses.includes(status) ? route.statuses.filter((s) => s !== status) : [...route.statuses, status];
        go({ ...route, statuses, page: 1 });
      });
      group.append(chip);
    }
    put(chip.lastChild, number(counts[status] ?? 0) + ' ' + status);
    chip.title = SEVERITIES[severity(status)].word;
    chip.ariaPressed = String(route.statuses.includes(status));
    chip.hidden = !counts[status] && !route.statuses.includes(status);
  }
}

function makeRow(name) {
  const link = el('a', { href: addressOf(name), 'data-focus': name }, name);
  const badge = el('span', { className: 'badge', hidden: true });
  const says = el('div', {}), advice = el('div', {});
  const make = (label, className, ...children) => el('td', { role: 'cell', className, 'data-label': label }, ...children);
  const cells = {
    name: make('', 'name', link, badge), status: make('', 'status'), lag: make('lag', 'n'), age: make('age', 'n'), replicas: make('replicas', 'n'),
    partitions: make('partitions', 'n partitions'), charge: make('RU', 'n charge'), measured: make('measured', 'n'), trend: make('', 'trend'), why: make('', 'why'),
  };
  const line = el('tr', { role: 'row', className: 'line' }, ...Object.values(cells));
  line.addEventListener('click', (e) => {
    if (e.target === link || getSelection().toString() !== '') return; // somebody copies text
    location.hash = addressOf(name);
  });
  cells.why.append(says, advice);
  return { line, cells, badge, says, advice, since: el('span', { className: 'since' }), status: '', trend: null };
}

function update(row, p) {
  const { cells } = row;
  if (row.status !== p.status) {
    cells.status.replaceChildren(pill(p.status), row.since);
    row.status = p.status;
  }
  put(row.since, since(p, now()));
  const badge = [p.members ? 'group' : '', p.group ? 'in ' + p.group : '', p.paused ? 'paused' : ''].filter((b) => b).join(', ');
  put(row.badge, badge);
  row.badge.hidden = badge === '';
  put(cells.lag, number(p.lag));
  put(cells.age, age(p));
  put(cells.replicas, replicas(p));
  put(cells.partitions, partitions(p));
  put(cells.charge, charge(p));
  put(cells.measured, measured(p, now()));
  const [says, advice] = why(p);
  put(row.says, says);
  put(row.advice, advice);
  cells.why.title = [says, advice].join(' ').trim();
  for (const c of Object.values(cells)) c.classList.toggle('unknown', c.textContent.startsWith(UNKNOWN));
  cells.why.classList.toggle('error', p.error !== null);
}

const TRENDS = 40; // that are asked for at once
const TREND_EVERY = 60_000; // ms after which one is asked for again

// missingTrends are the rows that somebody sees and whose trend is missing or old.
function missingTrends() {
  const seen = ({ line }) => {
    const { top, bottom } = line.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  };
  return [...rows].filter(([, row]) => seen(row) && !(now() - row.trend < TREND_EVERY)).slice(0, TRENDS).map(([name]) => name);
}

// showTrends draws the lag of the last hour into the rows.
function showTrends({ since, stepSeconds, lags }) {
  for (const [name, values] of Object.entries(lags)) {
    const row = rows.get(name);
    if (!row) continue;
    row.trend = now();
    row.cells.trend.replaceChildren(spark(values, 'Lag of the last hour: ' + trendWords(values, Date.parse(since), stepSeconds * 1000, now())));
  }
}
