// Elements. What they hold is only ever text or other elements: data never becomes markup.

const at = (id) => document.getElementById(id);

function el(name, props, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(props ?? {})) k in e ? (e[k] = v) : e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// svg makes an element of a drawing; the logo knows their namespace.
function svg(name, attributes, ...children) {
  const e = document.createElementNS(at('logo').namespaceURI, name);
  for (const [k, v] of Object.entries(attributes ?? {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

function put(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// show makes a part of an element anew if what it is made of has changed, in the order of the
// calls. The focus stays on what has the same data-focus.
function show(parent, id, content, make) {
  let old = at(id);
  const signature = JSON.stringify(content);
  if (old && old.signature === signature) return old;
  const focus = old?.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  const scrolled = old?.querySelector('.scroll')?.scrollTop;
  const fresh = make();
  fresh.id = id;
  fresh.signature = signature;
  old ? old.replaceWith(fresh) : parent.append(fresh);
  if (scrolled) fresh.querySelector('.scroll')?.scrollTo(0, scrolled);
  if (focus) fresh.querySelector('[data-focus="' + CSS.escape(focus) + '"]')?.focus({ preventScroll: true });
  return fresh;
}

// pill is a status with its sign, so that it needs no color.
function pill(status, kind = severity(status)) {
  return el('span', { className: 'pill ' + kind, title: SEVERITIES[kind].word }, el('span', { className: 'sign', 'aria-hidden': 'true' }, SEVERITIES[kind].sign + ' '), status);
}

// table is one of text with a caption that screen readers name it by.
function table(caption, head, rows) {
  return el('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': caption }, el('table', {},
    el('caption', { className: 'unseen' }, caption),
    el('thead', {}, el('tr', {}, ...head.map((h) => el('th', { scope: 'col', className: h.startsWith('>') ? 'n' : '' }, h.replace('>', ''))))),
    el('tbody', {}, ...rows)));
}

// rangeChoice offers ranges of time, the one of the address chosen.
function rangeChoice(ranges, next) {
  return el('fieldset', { className: 'choice' }, el('legend', {}, 'The last'), ...ranges.map((range) => {
    const input = el('input', { type: 'radio', name: 'range', value: range, checked: range === route.range, 'data-focus': 'range ' + range });
    input.addEventListener('change', () => go(next(range)));
    return el('label', {}, input, range);
  }));
}

const cell = (className, ...children) => el('td', { className }, ...children);

// fillPages puts the way to other pages into an element, which is hidden if there is one page.
function fillPages(nav, what, page, perPage, all, go) {
  const last = Math.max(1, Math.ceil(all / perPage));
  nav.hidden = last === 1;
  const signature = [page, perPage, all].join(' ');
  if (nav.signature === signature) return;
  const focus = nav.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  nav.signature = signature;
  const to = (title, target, key) => {
    const button = el('button', { type: 'button', className: 'plain', disabled: target < 1 || target > last || target === page, 'data-focus': key }, title);
    button.addEventListener('click', () => go(target));
    return button;
  };
  nav.replaceChildren(to('First', 1, 'first'), to('Previous', page - 1, 'previous'),
    el('span', {}, what + ' ' + number((page - 1) * perPage + 1) + ' to ' + number(Math.min(all, page * perPage)) + ' of ' + number(all)),
    to('Next', page + 1, 'next'), to('Last', last, 'last'));
  if (focus) (nav.querySelector('[data-focus=' + focus + ']:enabled') ?? nav.querySelector('button:enabled'))?.focus();
}
