// What ran since a time, by the leases (docs/beside-keda.md): the report of the API, a page at a time.

const RAN_EVERY = 300_000; // ms until it is asked for again
let ran = null; // the last answer, and what was asked for

const SINCE = ['24h', '3d', '7d']; // of the ranges of a history

const dayAndMinute = (time) => new Date(time).toISOString().slice(0, 16).replace('T', ' ');

async function askRan(signal, current) {
  const asked = route.range + ' ' + route.page;
  if (ran?.asked === asked && now() - ran.at < RAN_EVERY) return;
  const { data } = await get('report?since=' + RANGES[route.range].hours + 'h&page=' + (route.page - 1), null, signal);
  if (!current()) return;
  ran = { asked, at: now(), data };
}

function showRan() {
  const box = at('ran');
  show(box, 'ran-times', [route.range], () => rangeChoice(SINCE, (range) => ({ ...route, range, page: 1 })));
  if (!ran || ran.asked !== route.range + ' ' + route.page) {
    show(box, 'ran-table', [], () => el('p', { className: 'dim' }, 'loading …'));
    return;
  }
  const { data } = ran;
  show(box, 'ran-table', [ran.asked, ran.at], () => {
    const section = el('section', { 'aria-label': 'What ran' });
    const processors = data.processors.toSorted((a, b) => (b.replicaHours ?? -1) - (a.replicaHours ?? -1));
    section.append(el('p', {}, el('b', {}, 'Measured: '), sentence(data.note)),
      el('p', { className: 'dim' }, dayAndMinute(data.since) + ' to ' + dayAndMinute(data.until) + ' UTC'),
      table('What ran, by the leases', ['Processor', '>Replica-hours', '>Over', '>Worst age', '>Actions', '>RU', '>Not recorded', 'Trouble', 'Modelled'],
        [...processors.map((p) => ranRow(p.name, p)), ...data.groups.map(ranGroup), ...(processors.length > 1 ? [ranRow(null, data.total)] : [])]),
      el('p', { className: 'dim' }, 'Modelled, not measured: what a policy would have run for the same changes. All in one table, and checked against what ran: ', el('code', {}, 'feedscale report --ran keda')));
    if (route.page > 1 || data.nextPage !== null) {
      const to = (title, page) => {
        const button = el('button', { type: 'button', className: 'plain', disabled: page < 1 || page > route.page && data.nextPage === null }, title);
        button.addEventListener('click', () => go({ ...route, page }));
        return button;
      };
      section.append(el('nav', { 'aria-label': 'Pages of the report' }, to('Previous', route.page - 1), el('span', {}, 'Page ' + route.page + '; the total is of this page'), to('Next', route.page + 1)));
    }
    return section;
  });
}

// ranRow is a line of the report; without a name it is the total.
function ranRow(name, m) {
  const first = name === null ? el('th', { scope: 'row' }, 'total') : el('td', {}, el('a', { href: addressOf(name), 'data-focus': 'ran ' + name }, name));
  const replay = name === null ? '' : el('a', { href: writeRoute({ ...readRoute(''), name, range: route.range, policy: 'keda' }), 'data-focus': 'replay ' + name }, 'KEDA');
  if (m.error) return el('tr', {}, first, el('td', { className: 'error', colSpan: 8 }, m.error));
  const known = (text) => (m.recordedSeconds ? text : UNKNOWN);
  return el('tr', {}, first, cell('n', m.replicaHours === null ? UNKNOWN : m.replicaHours.toFixed(1)), cell('n', known(span(m.secondsOverObjective))),
    cell('n', known(m.worstAgeSeconds === null ? NOTHING : span(m.worstAgeSeconds))), cell('n', known(number(m.scaleActions))), cell('n', known(number(Math.round(m.requestUnits)))),
    cell('n', span(m.gapSeconds)), cell('nowrap', ranTrouble(m)), el('td', {}, replay));
}

function ranGroup(g) {
  return el('tr', {}, el('td', {}, el('a', { href: addressOf(g.name), 'data-focus': 'ran ' + g.name }, g.name), ' ', el('span', { className: 'badge' }, 'group')),
    cell('n', g.replicaHours === null ? UNKNOWN : g.replicaHours.toFixed(1)), cell('n'), cell('n'), cell('n', number(g.scaleActions)), el('td', { colSpan: 4 }));
}
