// Asks the server, and shows what it says at the address.

const PATIENCE = 30_000; // for one answer, in ms

// The key that the page was opened with leaves the address, and so the history, bookmarks and
// screenshots; it is kept in memory alone.
const opened = new URL(location.href);
let key = opened.searchParams.get('code');
if (key !== null) {
  opened.searchParams.delete('code');
  history.replaceState(null, '', opened);
}
const beside = location.pathname.replace(/dashboard\/?$/i, ''); // where the other functions are

let route = readRoute(location.hash);
let listAddress = '#/'; // the way back, with its filter
let list = null; // the last answer about all: its data and ETag
let ahead = 0; // by how many ms the server's clock is ahead of this one's
let answered = null; // when the last good answer came, by the server's clock
let trouble = ''; // why there is no newer one
let failures = 0; // in a row
let turn = 0; // an answer to an earlier question is not shown
let timer = 0;
let asking = null;

// now is the server's time, so that a wrong clock here makes nothing look old.
const now = () => Date.now() + ahead;

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// get asks for a path beside this page. Where the server says that nothing is new, it is null.
async function get(path, tag, signal) {
  const headers = {};
  if (key) headers['x-functions-key'] = key;
  if (tag) headers['If-None-Match'] = tag;
  let answer;
  try {
    answer = await fetch(beside + path, { cache: 'no-cache', redirect: 'error', referrerPolicy: 'no-referrer', signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]), headers });
  } catch (e) {
    throw e.name === 'AbortError' ? e : new Refused(0, 'The server does not answer. It is asked again and again.');
  }
  if (answer.status === 304) return null;
  if (!answer.ok) throw new Refused(answer.status, refusal(answer.status, (await answer.json().catch(() => ({}))).detail));
  try {
    return { data: await answer.json(), tag: answer.headers.get('ETag') };
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Refused(answer.status, e instanceof SyntaxError ? 'The server answers something else than processors.' : 'The server does not answer.');
  }
}

async function askList(signal, current) {
  const fresh = await get('processors?fields=summary', list?.tag, signal);
  if (!current()) return;
  if (fresh) {
    ahead = Date.parse(fresh.data.time) - Date.now();
    if (list) tell(everything(list.data), everything(fresh.data));
    list = fresh;
  }
}

// askTrends asks for the small charts of the rows that somebody sees, at once. What fails is left out: the list
// says what is wrong.
let trending = 0;
async function askTrends() {
  clearTimeout(trending);
  const names = !at('all').hidden && list && !trouble && !document.hidden ? missingTrends() : [];
  if (!names.length) return;
  const { signal } = asking;
  const got = await get('processors?fields=trend' + names.map((n) => '&name=' + encodeURIComponent(n)).join(''), null, signal).catch(() => null);
  if (got && !signal.aborted) showTrends(got.data);
}

// askOne asks for a processor or group with its partitions, and for what its history has since the
// last time.
async function askOne(signal, current) {
  const { name, range } = route;
  const asked = one;
  const fresh = await get('processors?name=' + encodeURIComponent(name), asked.tag, signal);
  if (!current()) return;
  if (fresh) {
    ahead = Date.parse(fresh.data.time) - Date.now();
    const p = everything(fresh.data)[0];
    if (!p) throw new Refused(404, 'No processor or group is named “' + name + '”.');
    if (asked.p) tell([asked.p], [p]);
    asked.p = p;
    asked.tag = fresh.tag;
    showOne();
  }
  const drawn = asked.p.members ? asked.p.members.toSorted((a, b) => (b.desiredReplicas ?? -1) - (a.desiredReplicas ?? -1)).slice(0, MEMBERS).map((m) => m.processor) : [];
  const again = asked.range === range;
  const [own, ...others] = await Promise.all([name, ...drawn].map((n) => askHistory(n, range, again ? (n === name ? asked.samples : asked.members.get(n) ?? []) : [], signal)));
  if (!current()) return;
  asked.range = range;
  asked.samples = own;
  asked.members = new Map(drawn.map((n, i) => [n, others[i]]));
  await askSimulation(asked, signal, current);
}

async function askHistory(name, range, known, signal) {
  const { hours, step, every } = RANGES[range];
  const since = now() - hours * 3_600_000;
  // The last step may have a later sample by now.
  const from = known.length ? Math.floor(known.at(-1).ms / every) * every : since;
  const path = 'processors/' + encodeURIComponent(name) + '/history?since=' + new Date(from).toISOString() + (step ? '&step=' + step : '');
  const { data } = await get(path, null, signal);
  return merge(known, data.samples.map((s) => ({ ...s, ms: Date.parse(s.time) })), from, since);
}

// askSimulation asks for a replay once, when it is chosen: it is work for the server.
async function askSimulation(asked, signal, current) {
  const wanted = route.policy && !asked.p.members ? route.policy + ' ' + route.range : '';
  if (asked.replayed === wanted) return;
  asked.replayed = wanted;
  asked.simulation = null;
  if (!wanted) return;
  asked.simulating = wanted;
  showOne();
  try {
    const { data } = await get('processors/' + encodeURIComponent(asked.name) + '/simulation?policy=' + route.policy + '&since=' + RANGES[route.range].hours + 'h', null, signal);
    asked.simulation = { ...data, since: Date.parse(data.since), series: data.series.map((p) => ({ ...p, ms: Date.parse(p.time) })) };
  } catch (e) {
    if (e.name === 'AbortError') asked.replayed = undefined;
    else if (e.status === 404) asked.simulation = { error: 'This server replays nothing, since it runs as a function app. Where feedscale is installed, the command below does.' };
    else asked.simulation = { error: e.message };
  }
  asked.simulating = '';
}

// ask asks for what the address shows, and again after a while. What was asked before is given up, so
// that questions do not pile up.
async function ask() {
  clearTimeout(timer);
  asking?.abort();
  asking = new AbortController();
  const mine = ++turn, started = performance.now(), current = () => mine === turn;
  try {
    await (route.report ? askRan : route.name === null ? askList : askOne)(asking.signal, current);
    if (!current()) return;
    trouble = '';
    failures = 0;
    answered = now();
  } catch (e) {
    if (!current()) return;
    trouble = e instanceof Refused ? e.message : 'This page failed: ' + e.message + '. Load it again.';
    failures++;
    at('key').hidden = e.status !== 401 && e.status !== 403;
  }
  if (!trouble) at('key').hidden = true;
  render();
  timer = setTimeout(again, pause(performance.now() - started, failures));
  askTrends();
}

// again asks while the page is looked at. When somebody comes back to it, it asks at once.
function again() {
  if (document.hidden) timer = 0;
  else ask();
}

function tell(before, after) {
  const text = news(before, after);
  if (text) put(at('news'), text);
}

function render() {
  const processors = route.report ? null : route.name === null ? list?.data.processors : one?.p && [one.p];
  tellTime();
  put(at('problem'), trouble ? trouble + (answered && (processors || route.report) ? ' What is below is of ' + clock(answered, now()) + '.' : '') : processors ? tooOld(processors, (route.name === null ? list.data.causes : one.p.causes) ?? [], now()) : '');
  at('problem').hidden = at('problem').textContent === '';
  document.body.classList.toggle('away', trouble !== '');
  at('all').hidden = route.name !== null || route.report || !list;
  at('one').hidden = route.name === null;
  at('ran').hidden = !route.report;
  for (const link of at('tabs').children) link.ariaCurrent = (link.id === 'to-report') === route.report ? 'page' : null;
  if (route.report) {
    document.title = 'Report – feedscale';
    showRan();
  } else if (route.name !== null) {
    document.title = one.name + (one.p ? ': ' + one.p.status : '') + ' – feedscale';
    showOne();
  } else if (list) {
    const loud = list.data.processors.filter((p) => severity(p.status) === 'critical').length;
    document.title = (loud ? '(' + loud + ') ' : '') + 'feedscale';
    showList(list.data);
  }
}

function tellTime() {
  put(at('live'), answered ? (trouble ? 'last good answer ' : 'updated ') + span((now() - answered) / 1000) + ' ago' : trouble ? 'no answer yet' : 'loading …');
}

// go changes what is shown, and the address with it; in place if that is no step to come back from.
function go(next, inPlace) {
  const address = writeRoute(next);
  if (address === location.hash || address === '#/' && location.hash === '') return;
  history[inPlace ? 'replaceState' : 'pushState'](null, '', address);
  arrive();
}

// arrive shows what the address says.
function arrive() {
  const before = route;
  route = readRoute(location.hash);
  if (route.name === null && !route.report) {
    listAddress = writeRoute(route);
    if (at('filter').value.trim() !== route.words.trim()) at('filter').value = route.words;
  } else if (one?.name !== route.name) one = forget(route.name);
  render();
  if (before.name !== route.name) {
    // The focus goes where the eye goes: to the name of what is shown, and back to the row.
    if (route.name !== null) {
      scrollTo(0, 0);
      at('name').focus({ preventScroll: true });
    } else if (before.name !== null) at('rows').querySelector('[data-focus="' + CSS.escape(before.name) + '"]')?.focus();
  }
  if (before.name !== route.name || before.report !== route.report || route.report && before.page !== route.page || before.range !== route.range || before.policy !== route.policy) ask();
}

at('filter').addEventListener('input', () => go({ ...route, words: at('filter').value, page: 1 }, true));
at('sort').addEventListener('change', () => go({ ...route, sort: at('sort').value, page: 1 }));
at('skip').addEventListener('click', () => at('main').focus());
at('key').addEventListener('submit', (e) => {
  e.preventDefault(); // nothing leaves the page by a form
  key = at('code').value;
  at('code').value = '';
  ask();
});
addEventListener('popstate', arrive);
document.addEventListener('visibilitychange', () => document.hidden || timer || ask());
addEventListener('resize', () => {
  if (one && route.name !== null && at('one').clientWidth !== one.width) {
    one.width = at('one').clientWidth;
    render();
  }
});
addEventListener('scroll', () => {
  clearTimeout(trending);
  trending = setTimeout(askTrends, 200);
});
setInterval(tellTime, 1000);
if (route.name !== null) one = forget(route.name);
at('filter').value = route.words;
if (route.name === null && !route.report) listAddress = writeRoute(route);
render();
ask();
