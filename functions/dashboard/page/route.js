// The address: what is shown, how it is filtered and sorted, and what is selected are in the part
// behind #, which no server sees: a Functions host forwards declared paths alone.

// Of each range how long it is, and of which steps one sample each is asked for ('' = every sample),
// also in ms.
const RANGES = {
  '1h': { hours: 1, step: '', every: 15_000 }, '6h': { hours: 6, step: '30s', every: 30_000 }, '24h': { hours: 24, step: '1m', every: 60_000 },
  '3d': { hours: 72, step: '5m', every: 300_000 }, '7d': { hours: 168, step: '10m', every: 600_000 },
};
const POLICIES = { own: 'its own policy', default: 'the default policy', keda: 'KEDA at its defaults' };
const ONE = '/processors/';
const RAN = '/report';

// readRoute reads an address; what it does not understand is as if it were not there.
function readRoute(hash) {
  const [path, query] = hash.replace(/^#/, '').split('?', 2);
  const given = new URLSearchParams(query ?? '');
  const route = {
    name: null, words: given.get('q') ?? '', statuses: (given.get('status') ?? '').split(',').filter((s) => s !== ''),
    sort: given.get('sort') ?? 'status', page: Math.max(1, Math.floor(Number(given.get('page'))) || 1),
    range: Object.hasOwn(RANGES, given.get('range') ?? '') ? given.get('range') : '6h',
    at: Number.isNaN(Date.parse(given.get('at'))) ? null : new Date(given.get('at')).toISOString(),
    policy: Object.hasOwn(POLICIES, given.get('policy') ?? '') ? given.get('policy') : '',
    report: path === RAN,
  };
  if (route.report && RANGES[route.range].hours < 24) route.range = '7d';
  if (!Object.hasOwn(COLUMNS, route.sort.replace(/^-/, ''))) route.sort = 'status';
  if (path.startsWith(ONE)) {
    try {
      route.name = decodeURIComponent(path.slice(ONE.length)) || null;
    } catch { /* not an address of this page: the list */ }
  }
  return route;
}

// writeRoute is the address of what is shown, without what goes without saying.
function writeRoute(route) {
  const query = [];
  const add = (name, value, without) => value && value !== without && query.push(name + '=' + encodeURIComponent(value).replaceAll('%2C', ',').replaceAll('%3A', ':'));
  if (route.name === null && !route.report) {
    add('q', route.words.trim());
    add('status', route.statuses.join(','));
    add('sort', route.sort, 'status');
    add('page', String(route.page), '1');
  } else if (route.report) {
    add('range', route.range, '7d');
    add('page', String(route.page), '1');
  } else {
    add('range', route.range, '6h');
    add('at', route.at);
    add('policy', route.policy);
  }
  return '#' + (route.report ? RAN : route.name === null ? '/' : ONE + encodeURIComponent(route.name)) + (query.length ? '?' + query.join('&') : '');
}

// addressOf is where a processor or group is shown.
const addressOf = (name) => writeRoute({ ...readRoute(''), name });
