// One processor or group.

const PARTITIONS = 50; // on a page
const DECISIONS = 30; // that are listed
const MEMBERS = 6; // of a group whose replicas are drawn
let one = null; // what is known of it
let scene = null; // what is drawn, and where the cursor may go
let partitionsPage = 1;

const forget = (name) => ({ name, p: null, range: '', samples: [], members: new Map(), simulation: null, simulating: '', width: 0 });

function showOne() {
  const box = at('one');
  const { p } = one;
  if (box.dataset.name !== one.name) {
    box.replaceChildren();
    box.dataset.name = one.name;
    partitionsPage = 1;
  }
  show(box, 'title', [one.name, p?.status, p?.paused, p?.group, !!p?.members], () => title(p));
  if (!p) return;
  show(box, 'findings', [p.findings], () => findings(p.findings));
  show(box, 'facts', [facts(p)], () => el('dl', { className: 'facts' }, ...facts(p).map(([term, text]) => el('div', {}, el('dt', {}, term), el('dd', { className: text === UNKNOWN ? 'unknown' : '' }, text)))));
  show(box, 'now', [p.reasons], () => el('section', { 'aria-label': 'Why' }, el('h3', {}, 'Why ' + (p.desiredReplicas === null ? 'nothing is decided' : count(p.desiredReplicas, 'replica'))), reasons(p.reasons)));
  if (p.members) show(box, 'members', [p.members], () => members(p));
  else show(box, 'partitions', [p.partitions, partitionsPage], () => partitionList(p.partitions));
  show(box, 'throughput', [p.throughput], () => throughput(p.throughput ?? []));
  show(box, 'times', [route.range], times);
  one.width ||= box.clientWidth;
  if (!at('slider')?.matches(':active')) show(box, 'charts', [one.name, one.range, one.width, one.samples.length, one.samples.at(-1)?.ms, one.simulation?.policy, one.simulation?.since, [...one.members].map(([, m]) => m.length), minute()], charts);
  moveTo(selected());
  show(box, 'moment', [selected()?.ms, route.at !== null], moment);
  show(box, 'decisions', [route.at, one.samples.filter(changed).map((s) => s.ms)], decisions);
  if (!p.members) show(box, 'simulation', [route.policy, route.range, one.simulation, one.simulating, one.samples.length], simulation);
}

const minute = () => Math.floor(now() / 60_000);

function title(p) {
  const back = el('a', { href: listAddress, className: 'back', 'data-focus': 'back' }, '← All processors');
  const name = el('h2', { id: 'name', tabIndex: -1, 'data-focus': 'name' }, one.name);
  const badges = [p?.members ? 'group' : '', p?.paused ? 'paused' : ''].filter((b) => b).map((b) => el('span', { className: 'badge' }, b));
  const group = p?.group ? [el('span', { className: 'badge' }, 'in ', el('a', { href: addressOf(p.group), 'data-focus': 'group' }, p.group))] : [];
  return el('div', {}, back, el('div', { className: 'title' }, name, ...(p ? [pill(p.status)] : [el('span', { className: 'dim' }, 'loading …')]), ...badges, ...group));
}

// findings says what was found and what to do about it, the worst first. Findings of the same remedy have
// it once.
function findings(list) {
  const parts = list.map((f, i) => el('div', { className: 'advice ' + f.severity },
    el('p', {}, pill(f.code, f.severity), ' ', sentence(f.sentence)),
    ...(f.remedy === list[i + 1]?.remedy ? [] : [el('p', {}, el('b', {}, 'What to do: '), sentence(f.remedy))])));
  return el('section', { 'aria-label': 'What to do', hidden: !list.length }, ...parts);
}

function facts(p) {
  const list = [['Lag', number(p.lag)], ['Age', age(p)], ['Replicas', replicas(p)]];
  if (p.members) list.push(['Members', number(p.members.length)]);
  else list.push(['Partitions with lag', withLag(p)], ['Arrives', rate(p.arrivalPerSecond)], ['A replica does', rate(p.drainPerReplica)], ['Caught up in', catchUp(p)]);
  list.push(['Scaler is told', p.metricValue === null ? UNKNOWN : number(p.metricValue) + (p.active ? ', active' : ', not active')]);
  list.push(['Measured', p.polledAt === null ? 'never' : clock(p.polledAt, now())], ['Scale events', number(p.sequence)]);
  if (!p.members) list.push(['Last poll', count(p.requests, 'request') + ', ' + charge(p) + ' RU']);
  return list;
}

function reasons(list) {
  if (!list.length) return el('p', {}, 'No reason is known.');
  return el('ol', { className: 'reasons' }, ...list.map((r) => el('li', {}, el('b', {}, r.step), ' ' + r.why, el('span', { className: 'to' }, ' → ' + number(r.replicas)))));
}

function members(p) {
  const top = highest(p.members);
  const list = [...p.members].sort((a, b) => (b.desiredReplicas ?? -1) - (a.desiredReplicas ?? -1) || worstFirst(a, b)).map((m) => el('tr', {},
    el('td', {}, el('a', { href: addressOf(m.processor), 'data-focus': 'member ' + m.processor }, m.processor), ...(top.includes(m.processor) ? [' ', el('span', { className: 'badge' }, 'highest')] : [])),
    cell('', pill(m.status)), cell('n', number(m.lag)), cell('n', number(m.desiredReplicas))));
  return el('section', { 'aria-label': 'Members' }, el('h3', {}, 'Members'), table('Members, the highest first', ['Processor', 'Status', '>Lag', '>Asks for'], list));
}

// throughput is what the containers that follow the replicas have, and are to have.
function throughput(list) {
  if (!list.length) return el('div', { hidden: true });
  const rows = list.map((t) => el('tr', {},
    el('td', {}, t.container, ...(t.atLimit ? [' ', el('span', { className: 'badge' }, 'at its limit')] : [])),
    cell('nowrap', t.mode), cell('n', number(t.provisionedRUPerSecond)), cell('n', number(t.desiredRUPerSecond)), cell('n', bill(t.bill)),
    cell(t.error === null ? 'long' : 'long error', t.error ?? t.note ?? t.reasons.at(-1)?.why ?? '')));
  return el('section', { 'aria-label': 'Throughput' }, el('h3', {}, 'Throughput'), table('Containers that follow the replicas', ['Container', 'Mode', '>RU/s', '>Wanted', '>RU/s-hours', 'Why'], rows));
}

// bill is what was provisioned in the last hours.
const bill = (b) => number(b.provisionedRUHours) + ' in ' + count(b.hours, 'hour');

const times = () => rangeChoice(Object.keys(RANGES), (range) => ({ ...route, range, at: null }));

// charts draws lag, age, replicas and status on one scale of time, and the slider that reads them.
function charts() {
  const to = now();
  const section = el('section', { 'aria-label': 'The last ' + route.range });
  if (!one.samples.length) {
    scene = null;
    section.append(el('p', { className: 'dim' }, one.range ? 'Nothing is recorded in this time.' : 'loading …'));
    return section;
  }
  const others = [];
  if (one.simulation?.series) others.push({ className: 'simulated', points: one.simulation.series });
  [...one.members].forEach(([, samples], i) => others.push({ className: 'member dash' + i, points: samples }));
  scene = { width: Math.max(280, one.width), every: RANGES[one.range].every, from: beginning(one.samples[0].ms, to, RANGES[one.range].hours * 3_600_000), to, now: to, samples: one.samples, decisions: one.samples.filter(changed), others, drawn: [] };
  for (const chart of CHARTS) {
    const own = chart.id === 'replicas' ? others : others.filter((o) => o.className === 'simulated');
    const drawn = drawChart(chart, { ...scene, others: own });
    scene.drawn.push(drawn);
    section.append(el('figure', {}, el('figcaption', {}, el('b', {}, chart.title), ' ', el('span', { className: 'dim' }, chart.unit)), drawn.svg));
  }
  const band = drawStatus(scene);
  scene.drawn.push(band);
  section.append(el('figure', {}, el('figcaption', {}, el('b', {}, 'Status'), ' ', el('span', { className: 'dim' }, 'the higher, the worse')), band.svg), drawTimes(scene));
  for (const { svg: drawing } of scene.drawn) {
    drawing.addEventListener('pointermove', (e) => moveTo(nearest(msAt(e))));
    drawing.addEventListener('pointerleave', () => moveTo(selected()));
    drawing.addEventListener('click', (e) => select(nearest(msAt(e))));
  }
  const slider = el('input', { type: 'range', id: 'slider', min: 0, max: one.samples.length - 1, step: 1, 'aria-label': 'Time', 'data-focus': 'slider' });
  slider.addEventListener('input', () => moveTo(one.samples[slider.value]));
  slider.addEventListener('change', () => select(one.samples[slider.value]));
  section.append(slider, el('p', { id: 'reading' }), el('p', { className: 'legend dim' }, legend()));
  return section;
}

function legend() {
  const step = RANGES[one.range].step;
  const text = ['Hatched: unknown. Empty: not polled.'];
  if (scene.from > scene.to - RANGES[one.range].hours * 3_600_000) text.push('Nothing is recorded before ' + clock(one.samples[0].ms, scene.now) + '.');
  if (step) text.push('One sample in ' + step + ', and every decision that changed the replicas.');
  if (one.simulation?.series) text.push('Dashed: what ' + POLICIES[one.simulation.policy] + ' would have made of it, by the model of feedscale simulate.');
  if (one.members.size) text.push('Thin lines: what ' + [...one.members.keys()].join(', ') + ' asked for' + (one.p.members.length > MEMBERS ? ' (the ' + MEMBERS + ' highest members)' : '') + '.');
  return text.join(' ');
}

const msAt = (e) => scene.from + (e.clientX - scene.drawn[0].svg.getBoundingClientRect().left - LEFT) / (scene.width - LEFT - RIGHT) * (scene.to - scene.from);

function nearest(ms) {
  return one.samples.reduce((best, s) => (Math.abs(s.ms - ms) < Math.abs(best.ms - ms) ? s : best));
}

// selected is the sample that the address names, else the last one.
const selected = () => (one.samples.length ? (route.at === null ? one.samples.at(-1) : nearest(Date.parse(route.at))) : null);

function select(sample) {
  go({ ...route, at: new Date(sample.ms).toISOString() }, true);
}

// moveTo puts the cursor of all charts on a sample.
function moveTo(sample) {
  if (!scene || !sample || !at('slider')) return;
  for (const { cursor, x } of scene.drawn) {
    cursor.setAttribute('x1', x(sample.ms));
    cursor.setAttribute('x2', x(sample.ms));
  }
  const text = clock(sample.ms, scene.now) + ': ' + reading(sample);
  at('slider').value = one.samples.indexOf(sample);
  at('slider').ariaValueText = text;
  put(at('reading'), text);
}

// moment says what was decided at the selected time, and from what.
function moment() {
  const s = selected();
  const section = el('section', { 'aria-label': 'Selected time', hidden: route.at === null || !s });
  if (section.hidden) return section;
  const what = changed(s) ? 'Decision at ' + clock(s.ms, now()) + ': ' + step(s) : 'At ' + clock(s.ms, now());
  const clear = el('button', { type: 'button', className: 'plain', 'data-focus': 'clear' }, 'Close');
  clear.addEventListener('click', () => go({ ...route, at: null }, true));
  section.append(el('h3', {}, what, ' ', clear), el('p', {}, sentence(reading(s))), reasons(s.reasons));
  if (s.partitions?.length) {
    section.append(table('Partitions then, the worst first', ['Partition', 'Status', '>Lag'], s.partitions.map((q) => el('tr', {}, cell('lease', q.lease), cell('', pill(q.status)), cell('n', number(q.lag))))));
    if (s.partitionCount > s.partitions.length) section.append(el('p', { className: 'dim' }, 'The worst ' + s.partitions.length + ' of ' + number(s.partitionCount) + ' are recorded.'));
  }
  return section;
}

const step = (s) => (s.previousReplicas === null ? 'none' : number(s.previousReplicas)) + ' → ' + count(s.desiredReplicas, 'replica');

function decisions() {
  const all = one.samples.filter(changed).reverse();
  const section = el('section', { 'aria-label': 'Decisions' }, el('h3', {}, 'Decisions that changed the replicas'));
  if (!all.length) {
    section.append(el('p', { className: 'dim' }, 'None in this time.'));
    return section;
  }
  const chosen = selected();
  section.append(table('Decisions, the newest first', ['Time', 'Replicas', '>Lag', '>Age', 'Status', 'Why'], all.slice(0, DECISIONS).map((s) => {
    const button = el('button', { type: 'button', className: 'link', 'data-focus': 'decision ' + s.ms, ariaPressed: String(route.at !== null && s === chosen) }, clock(s.ms, now()));
    button.addEventListener('click', () => {
      select(s);
      at('moment').scrollIntoView({ block: 'nearest' });
    });
    const up = s.desiredReplicas > (s.previousReplicas ?? 0);
    return el('tr', { className: route.at !== null && s === chosen ? 'chosen' : '' }, el('td', {}, button), el('td', { className: 'nowrap' }, (up ? '▲ ' : '▼ ') + step(s).replace(/ replicas?$/, '')),
      cell('n', number(s.lag)), cell('n', age(s)), cell('', pill(s.status)), cell('long', s.reasons.length ? s.reasons.at(-1).step + ': ' + s.reasons.at(-1).why : ''));
  })));
  if (all.length > DECISIONS) section.append(el('p', { className: 'dim' }, 'The last ' + DECISIONS + ' of ' + number(all.length) + '. All: ', el('code', {}, 'feedscale history ' + one.name + ' --since ' + RANGES[one.range].hours + 'h --output csv')));
  return section;
}

// simulation offers to see what another policy would have made of the same changes.
function simulation() {
  const section = el('section', { 'aria-label': 'Another policy' }, el('h3', {}, 'What another policy would have done'));
  const choices = [['', 'none'], ...Object.entries(POLICIES)].map(([policy, text]) => {
    const input = el('input', { type: 'radio', name: 'policy', value: policy, checked: policy === route.policy, 'data-focus': 'policy ' + policy });
    input.addEventListener('change', () => go({ ...route, policy }));
    return el('label', {}, input, text);
  });
  section.append(el('fieldset', { className: 'choice' }, el('legend', {}, 'Replay'), ...choices));
  const r = one.simulation;
  if (one.simulating) section.append(el('p', { className: 'dim' }, 'replaying …'));
  else if (r?.error) section.append(el('p', { className: 'error' }, r.error));
  else if (r?.series) {
    const happened = totals(one.samples.filter((s) => s.ms >= r.since), now(), RANGES[one.range].every);
    const line = (name, t) => el('tr', {}, el('th', { scope: 'row' }, name), cell('n', t.replicaHours.toFixed(1)), cell('n', number(t.maxLag)), cell('n', span(t.maxAgeSeconds)), cell('n', number(t.actions)));
    section.append(table('What happened, and the replay', ['', '>Replica-hours', '>Most lag', '>Most age', '>Changes'], [line('what was decided', happened), line(POLICIES[r.policy], r)]),
      el('p', { className: 'dim' }, 'From ' + clock(r.since, now()) + ', ' + count(r.partitions, 'partition') + ', ' + rate(r.throughputPerReplica) + ' a replica' + (r.throughputMeasured ? ' as was measured' : ', which is a guess') +
        (r.guessedSeconds ? '; for ' + span(r.guessedSeconds) + ' no arrival rate was recorded' : '') + '. A replay begins with no replica and takes what arrived to be spread evenly.'));
  }
  section.append(el('p', { className: 'dim' }, 'With more choices: ', el('code', {}, 'feedscale simulate --trace history:' + one.name + ' --since ' + RANGES[route.range].hours + 'h --compare')));
  return section;
}

function partitionList(list) {
  const section = el('section', { 'aria-label': 'Partitions' }, el('h3', {}, 'Partitions'));
  if (!list.length) {
    section.append(el('p', { className: 'dim' }, 'No partition is known.'));
    return section;
  }
  const worst = [...list].sort(worstFirst);
  const last = Math.max(1, Math.ceil(worst.length / PARTITIONS));
  partitionsPage = Math.min(partitionsPage, last);
  const notes = worst.some((q) => note(q, now()) !== '');
  section.append(table('Partitions, the worst first', ['Lease', 'Status', '>Lag', '>Age', 'Owner', ...(notes ? ['Note'] : [])],
    worst.slice((partitionsPage - 1) * PARTITIONS, partitionsPage * PARTITIONS).map((q) => el('tr', {},
      el('td', { className: 'lease', title: q.range ? q.range.min + ' to ' + q.range.max : q.lease }, q.lease), cell('', pill(q.status)),
      cell(q.lag === null ? 'n unknown' : 'n', (q.approximate && q.lag !== null ? '~' : '') + number(q.lag)), cell('n', age(q)), cell('owner', q.owner ?? 'nobody'),
      ...(notes ? [cell(q.error === null ? 'long' : 'long error', note(q, now()))] : [])))));
  const nav = el('nav', { 'aria-label': 'Pages of partitions' });
  fillPages(nav, 'Partitions', partitionsPage, PARTITIONS, worst.length, (target) => {
    partitionsPage = target;
    showOne();
  });
  section.append(nav);
  return section;
}
