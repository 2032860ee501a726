// Holds what the page does, as a person, a keyboard and a screen reader meet it.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { browser, drawn, open, say, worlds } from './page.mjs';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const phone = { viewport: { width: 360, height: 740 } };
const EVERY = 11_000; // a little longer than the page waits between two questions, in ms

async function rule(name, address, hold, options) {
  const [world, hash] = address.split('#');
  let page;
  try {
    page = await open(world, hash === undefined ? '' : '#' + hash, options);
    page.setDefaultTimeout(10_000);
    await hold(page);
    const complaints = page.complaints.filter((c) => !c.startsWith('Failed to load resource'));
    assert.deepEqual(complaints, [], 'the page complains');
    say(name);
  } catch (e) {
    say(name, e.stack ?? String(e));
  }
  await page?.context().close();
}

const hash = (page) => page.evaluate(() => location.hash);
const names = (page) => page.locator('#rows .name a').allTextContents();
const row = (page, name) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
const head = (page, name) => page.getByRole('columnheader', { name });
const withClock = (more) => ({ before: async (page) => { await page.clock.install(); await more?.(page); } });

await rule('a screen reader meets landmarks, a named table and a row for each processor', 'thirty', async (page) => {
  for (const landmark of ['banner', 'main', 'search']) await page.getByRole(landmark).waitFor();
  const table = page.getByRole('table', { name: 'Processors and groups, sorted by status' });
  assert.equal(await table.getByRole('row').count(), 1 + 31);
  assert.equal(await table.getByRole('columnheader').count(), 10);
  assert.match(await row(page, 'payments').innerText(), /stalled/);
});

await rule('the first sentence says what is wrong, and leads there', 'thirty', async (page) => {
  const first = page.locator('#causes');
  assert.match(await first.innerText(), /^\S.*: .+\. .+\. \d+ others below need help as well\.$/);
  const name = await first.getByRole('link').innerText();
  await first.getByRole('link').click();
  await page.getByRole('heading', { name, level: 2 }).waitFor();
});

await rule('each row that is seen has the lag of the last hour, asked for at once', 'thirty', async (page) => {
  const chart = row(page, 'payments').getByRole('img');
  await chart.waitFor();
  assert.match(await chart.getAttribute('aria-label'), /^Lag of the last hour: most [\d,]+ at \d\d:\d\d, last [\d,]+$/);
  const asked = page.asked.filter((r) => r.url().includes('fields=trend'));
  assert.equal(asked.length, 1);
  const wanted = new URL(asked[0].url()).searchParams.getAll('name');
  assert.ok(wanted.length < 31, 'rows below the window are asked for');
  await page.locator('#rows tr').last().scrollIntoViewIfNeeded();
  await page.locator('#rows tr').last().getByRole('img').waitFor();
});

await rule('the worst status is first, and each status is a word with a sign', 'thirty', async (page) => {
  assert.equal((await names(page))[0], 'audit-archive');
  const order = ['unknown', 'stalled', 'expiring', 'bootstrap', 'splitting', 'unclaimed', 'uncheckpointed', 'lagging', 'ok'];
  const shown = (await page.locator('#rows .pill').allTextContents()).map((text) => text.split(' '));
  assert.deepEqual([...new Set(shown.map(([, status]) => status))], order);
  assert.equal(new Set(shown.map(([sign]) => sign)).size, 4);
});

await rule('a head of a column sorts, by keyboard too, and the address has it', 'thirty', async (page) => {
  await head(page, 'Lag').getByRole('button').press('Enter');
  assert.equal(await hash(page), '#/?sort=-lag');
  assert.equal(await head(page, 'Lag').getAttribute('aria-sort'), 'descending');
  const lags = (await page.locator('#rows td[data-label=lag]').allTextContents()).map((text) => (text === '?' ? Infinity : Number(text.replaceAll(',', ''))));
  assert.deepEqual(lags, [...lags].sort((a, b) => b - a));
  assert.ok(await head(page, 'Lag').getByRole('button').evaluate((e) => e === document.activeElement));
  await head(page, 'Lag').getByRole('button').click();
  assert.equal(await hash(page), '#/?sort=lag');
  await head(page, 'Processor').getByRole('button').click();
  assert.equal((await names(page))[0], 'audit-archive');
  await page.goBack();
  await page.goBack();
  assert.equal(await head(page, 'Lag').getAttribute('aria-sort'), 'descending');
});

await rule('words filter by name, group and error, in the address', 'thirty', async (page) => {
  await page.getByRole('searchbox').fill('shop-workers');
  assert.deepEqual((await names(page)).sort(), ['orders', 'payments', 'shop-workers', 'stock']);
  assert.equal(await hash(page), '#/?q=shop-workers');
  await page.reload();
  await row(page, 'orders').waitFor();
  assert.equal((await names(page)).length, 4);
  await page.getByRole('searchbox').fill('throttles 429');
  assert.deepEqual(await names(page), ['audit-archive']);
  await page.getByRole('searchbox').fill('nothing is called so');
  await page.getByText('No processor matches this filter.').waitFor();
});

await rule('statuses filter, several at once, in the address', 'thirty', async (page) => {
  const chip = (status) => page.getByRole('button', { name: new RegExp('\\d ' + status + '$') });
  await chip('stalled').click();
  await chip('expiring').click();
  assert.equal(await hash(page), '#/?status=stalled,expiring');
  assert.equal(await chip('stalled').getAttribute('aria-pressed'), 'true');
  assert.deepEqual((await names(page)).sort(), ['invoices', 'payments', 'shop-workers']);
  await chip('stalled').click();
  assert.deepEqual(await names(page), ['invoices']);
});

await rule('5,000 processors are pages of a hundred rows', 'many', async (page) => {
  assert.equal(await page.locator('#rows tr').count(), 100);
  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(elements < 2_500, elements + ' elements');
  await page.getByText('Processors 1 to 100 of 5,001').waitFor();
  const first = await names(page);
  await page.getByRole('navigation', { name: 'Pages of processors' }).getByRole('button', { name: 'Next' }).click();
  assert.equal(await hash(page), '#/?page=2');
  assert.equal(await page.locator('#rows tr').count(), 100);
  assert.ok((await names(page)).every((name) => !first.includes(name)));
  await page.getByRole('searchbox').fill('projection-4999');
  assert.equal((await names(page)).length, 1);
  const list = page.asked.find((r) => r.url().includes('/api/processors'));
  assert.match(list.url(), /fields=summary$/);
  assert.equal((await (await list.response()).allHeaders())['content-encoding'], 'gzip');
});

await rule('a processor has an address, the focus goes to its name, and back to its row', 'thirty#/?status=stalled', async (page) => {
  await page.getByRole('link', { name: 'payments' }).press('Enter');
  assert.equal(await hash(page), '#/processors/payments');
  const name = page.getByRole('heading', { name: 'payments', level: 2 });
  await name.waitFor();
  assert.ok(await name.evaluate((e) => e === document.activeElement));
  await page.getByRole('region', { name: 'Partitions', exact: true }).waitFor();
  await page.waitForFunction(() => document.title === 'payments: stalled – feedscale');
  await page.getByRole('link', { name: 'All processors' }).click();
  assert.equal(await hash(page), '#/?status=stalled');
  assert.ok(await page.getByRole('link', { name: 'payments' }).evaluate((e) => e === document.activeElement));
});

await rule('a finding says what is wrong, where, and what to do', 'thirty#/processors/payments', async (page) => {
  const findings = page.getByRole('region', { name: 'What to do' });
  await findings.getByText('✖ stalled', { exact: true }).waitFor();
  await findings.getByText('look at the change at that position', { exact: false }).waitFor();
  await findings.getByText('since 02:15 UTC; the handler does not return, and the lease stays with host payments-7c9f-2', { exact: false }).waitFor();
  const partitions = page.getByRole('table', { name: 'Partitions, the worst first' });
  assert.match(await partitions.getByRole('row').nth(1).innerText(), /^3\s+✖ stalled\s+2,412/);
});

await rule('containers whose throughput follows are told, with why', 'thirty#/processors/payments', async (page) => {
  const row = page.getByRole('table', { name: 'Containers that follow the replicas' }).getByRole('row').nth(1);
  assert.match(await row.innerText(), /^shop\/ledger at its limit\s+apply\s+1,100\s+1,600\s+0 in 0 hours\s+payments needs 5 x 320 RU\/s <img src=x/);
});

await rule('what documents and errors say stays text', 'thirty#/processors/audit-archive', async (page) => {
  await page.getByRole('table', { name: 'Partitions, the worst first' }).getByText('<img src=x').first().waitFor();
  assert.equal(await page.locator('main img, main script').count(), 0);
  assert.doesNotMatch(await page.title(), /broken in/);
});

await rule('each chart has its text, and a slider reads it by keyboard', 'thirty#/processors/orders', async (page) => {
  await drawn(page);
  for (const start of ['Lag: last', 'Age: last', 'Replicas: last', 'Status: ']) await page.getByRole('img', { name: start }).waitFor();
  assert.match(await page.getByRole('img', { name: 'Lag: last' }).getAttribute('aria-label'), /most [\d,]+ at \d\d:\d\d:\d\d UTC, least [\d,]+; unknown in \d+ of [\d,]+ samples\./);
  const slider = page.getByRole('slider', { name: 'Time' });
  await slider.press('Home');
  const first = await slider.getAttribute('aria-valuetext');
  assert.match(first, /UTC: lag [\d,]+, age .*, \d+ replicas?, \w+, \d+ \/ 8 partitions with lag$/);
  await slider.press('ArrowRight');
  assert.notEqual(await slider.getAttribute('aria-valuetext'), first);
  assert.match(await hash(page), /at=20/);
  assert.ok(await slider.evaluate((e) => e === document.activeElement));
});

await rule('a range of time is in the address', 'thirty#/processors/orders?range=24h', async (page) => {
  await drawn(page);
  assert.ok(await page.getByRole('radio', { name: '24h' }).isChecked());
  await page.getByRole('radio', { name: '1h' }).check();
  await page.getByRole('region', { name: 'The last 1h' }).waitFor();
  assert.equal(await hash(page), '#/processors/orders?range=1h');
});

await rule('a decision that is selected has its reasons and partitions then, and an address', 'thirty#/processors/orders', async (page) => {
  await drawn(page);
  await page.getByRole('table', { name: 'Decisions, the newest first' }).getByRole('button').first().click();
  const moment = page.getByRole('region', { name: 'Selected time' });
  await moment.getByRole('heading', { name: /^Decision at \d\d:\d\d:\d\d UTC: \d+ → \d+ replicas?/ }).waitFor();
  assert.ok(await moment.getByRole('listitem').count() > 0);
  assert.equal(await moment.getByRole('table', { name: 'Partitions then, the worst first' }).getByRole('row').count(), 9);
  const text = await moment.innerText();
  await page.reload();
  await moment.getByRole('heading').waitFor();
  assert.equal(await moment.innerText(), text);
  await moment.getByRole('button', { name: 'Close' }).click();
  assert.equal(await hash(page), '#/processors/orders');
});

await rule('a group has its members, the highest first, and their lines', 'thirty#/processors/shop-workers', async (page) => {
  await drawn(page);
  const members = page.getByRole('table', { name: 'Members, the highest first' }).getByRole('row');
  assert.equal(await members.count(), 4);
  assert.match(await members.nth(1).innerText(), /highest/);
  assert.equal(await page.locator('path.member').count(), 3);
  await members.getByRole('link', { name: 'payments' }).click();
  await page.getByRole('heading', { name: 'payments', level: 2 }).waitFor();
  await page.getByRole('link', { name: 'shop-workers' }).waitFor();
});

await rule('another policy is shown beside what happened', 'thirty#/processors/orders', async (page) => {
  await page.getByRole('radio', { name: 'KEDA' }).check();
  const table = page.getByRole('table', { name: 'What happened, and the replay' });
  await table.waitFor();
  assert.deepEqual(await table.getByRole('rowheader').allTextContents(), ['what was decided', 'KEDA at its defaults']);
  assert.equal(await page.locator('path.simulated').count(), 3);
  assert.equal(await hash(page), '#/processors/orders?policy=keda');
  assert.equal(page.asked.filter((r) => r.url().includes('/simulation')).length, 1);
});

await rule('where nothing is replayed, the command is named', 'thirty#/processors/orders?policy=own', async (page) => {
  await page.getByText('This server replays nothing').waitFor();
  await page.getByText('feedscale simulate --trace history:orders --since 6h').waitFor();
}, { before: (page) => page.route('**/simulation?**', (r) => r.fulfill({ status: 404, body: '' })) });

await rule('the report says what ran, by the leases, and leads to a replay', 'thirty', async (page) => {
  await page.getByRole('link', { name: 'Report' }).click();
  await page.getByText('replicas are counted by the leases, which is a lower bound', { exact: false }).waitFor();
  assert.equal(await hash(page), '#/report');
  const table = page.getByRole('table', { name: 'What ran, by the leases' });
  assert.equal(await table.getByRole('row').count(), 1 + 30 + 1 + 1);
  assert.match(await table.getByRole('row').filter({ has: page.getByRole('link', { name: 'orders', exact: true }) }).innerText(), /^orders\s+[\d.]+\s/);
  await page.getByRole('radio', { name: '24h' }).check();
  assert.equal(await hash(page), '#/report?range=24h');
  await table.getByRole('row').filter({ has: page.getByRole('link', { name: 'orders', exact: true }) }).getByRole('link', { name: 'KEDA' }).click();
  await page.getByRole('table', { name: 'What happened, and the replay' }).waitFor();
  assert.equal(await hash(page), '#/processors/orders?range=24h&policy=keda');
});

await rule('a processor that nobody knows is said', 'thirty#/processors/nobody', async (page) => {
  await page.getByRole('alert').getByText('No processor or group is named “nobody”.').waitFor();
});

await rule('a server that fails is said with the time of the last good answer, and forgotten when it answers', 'thirty', async (page) => {
  await row(page, 'orders').waitFor();
  let fails = true;
  await page.route('**/api/processors?fields=summary', (r) => (fails ? r.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"detail":"the state cannot be read"}' }) : r.continue()));
  await page.clock.runFor(EVERY);
  await page.getByRole('alert').getByText(/^The server answers 503: the state cannot be read\. What is below is of 02:47:\d\d UTC\.$/).waitFor();
  assert.match(await page.locator('#live').textContent(), /^last good answer/);
  assert.ok(await row(page, 'orders').isVisible());
  fails = false;
  await page.clock.runFor(3 * EVERY);
  await page.getByRole('alert').waitFor({ state: 'hidden' });
}, withClock());

await rule('one question is asked at a time, however long the answer takes', 'thirty', async (page) => {
  await row(page, 'orders').waitFor();
  let asked = 0;
  await page.route('**/api/processors?fields=summary', () => asked++); // never answered
  const first = page.waitForRequest(/fields=summary/);
  await page.clock.runFor(EVERY);
  await first;
  await page.clock.runFor(2 * EVERY); // within its patience for one answer
  await page.getByRole('searchbox').fill('orders'); // the page goes on meanwhile
  assert.deepEqual(await names(page), ['orders']);
  assert.equal(asked, 1);
}, withClock());

await rule('what is known already is not sent again', 'thirty', async (page) => {
  await row(page, 'orders').waitFor();
  const next = page.waitForResponse(/fields=summary/);
  await page.clock.runFor(EVERY);
  const answer = await next;
  assert.equal(answer.status(), 304);
  assert.match((await answer.request().allHeaders())['if-none-match'], /^"/);
  assert.ok(await row(page, 'orders').isVisible());
}, withClock());

await rule('what turned bad is announced once, by name', 'thirty', async (page) => {
  await row(page, 'stock').waitFor();
  assert.equal(await page.locator('#news').textContent(), '');
  await page.route('**/api/processors?fields=summary', async (r) => {
    const answer = await r.fetch({ headers: { ...r.request().headers(), 'if-none-match': '' } });
    const all = await answer.json();
    all.processors.find((p) => p.name === 'stock').status = 'stalled';
    await r.fulfill({ response: answer, json: all });
  });
  await page.clock.runFor(EVERY);
  await page.getByRole('status').getByText('stock is stalled.', { exact: true }).waitFor();
}, withClock());

await rule('a key in the address leaves it, and goes into a header', 'thirty', async (page) => {
  await row(page, 'orders').waitFor();
  assert.equal(await page.evaluate(() => location.href), worlds.thirty + '/api/dashboard#/?sort=-lag');
  await page.goto(worlds.thirty + '/api/dashboard#/processors/orders');
  await drawn(page);
  const asked = page.asked.filter((r) => r.url().includes('/api/processors'));
  assert.ok(asked.length > 2);
  for (const r of asked) {
    assert.equal((await r.allHeaders())['x-functions-key'], 'k 1+2');
    assert.ok(!r.url().includes('k'.concat('%20')) && !r.url().includes('code='));
  }
  assert.doesNotMatch(await page.content(), /k 1\+2/);
  assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, '']);
}, { query: '?code=k%201%2B2#/?sort=-lag' });

await rule('a key that is refused is asked for', 'thirty', async (page) => {
  await page.getByRole('alert').getByText('a key of the whole app').waitFor();
  await page.getByLabel('Key').fill('right');
  await page.getByLabel('Key').press('Enter');
  await row(page, 'orders').waitFor();
  assert.ok(await page.getByLabel('Key').isHidden());
  assert.ok(await page.getByRole('alert').isHidden());
}, { before: (page) => page.route('**/api/processors**', (r) => (r.request().headers()['x-functions-key'] === 'right' ? r.continue() : r.fulfill({ status: 401, body: '' }))) });

await rule('by keyboard everything is reached in the order of the page, with a focus that is seen', 'thirty', async (page) => {
  await row(page, 'orders').waitFor();
  const seen = [];
  for (let i = 0; i < 25; i++) {
    await page.keyboard.press('Tab');
    seen.push(await page.evaluate(() => {
      const e = document.activeElement;
      return { what: e.id || e.dataset.status || e.textContent, outline: getComputedStyle(e).outlineStyle };
    }));
  }
  assert.deepEqual(seen.map((s) => s.what.trim()), ['skip', 'home', 'to-list', 'to-report', 'audit-archive', 'filter', 'unknown', 'stalled', 'expiring', 'bootstrap', 'splitting', 'unclaimed', 'uncheckpointed', 'lagging', 'ok',
    'Processor', 'Status ↑', 'Lag', 'Age', 'Replicas', 'Partitions', 'RU', 'Measured', 'audit-archive', 'shop-workers']);
  assert.deepEqual(seen.filter((s) => s.outline === 'none'), []);
});

for (const [name, hash] of [['the list', ''], ['a processor', '#/processors/audit-archive'], ['a decision', '#/processors/orders?at=2026-03-01T01:00:00Z'], ['a group', '#/processors/shop-workers'], ['the report', '#/report']]) {
  await rule(name + ' fits a phone of 360 pixels', 'thirty' + hash, async (page) => {
    if (hash) await (name === 'the report' ? page.waitForSelector('#ran table') : drawn(page));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 360);
  }, phone);
  for (const colorScheme of ['light', 'dark']) {
    for (const viewport of [undefined, phone.viewport]) {
      await rule(`${name} meets the rules of axe, ${colorScheme}${viewport ? ', on a phone' : ''}`, 'thirty' + hash, async (page) => {
        if (hash) await (name === 'the report' ? page.waitForSelector('#ran table') : drawn(page));
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run());
        assert.deepEqual(violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('\n')), []);
      }, { colorScheme, ...(viewport && { viewport }) });
    }
  }
}

await rule('on a phone it is sorted by a list of choices', 'thirty', async (page) => {
  await page.getByRole('combobox', { name: 'Sort by' }).selectOption('-lag');
  assert.equal(await hash(page), '#/?sort=-lag');
}, phone);

await rule('nothing moves, for who wants less motion and for all others', 'thirty#/processors/orders', async (page) => {
  await drawn(page);
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).transitionDuration !== '0s' || getComputedStyle(e).animationName !== 'none').length);
  assert.equal(moving, 0);
}, { reducedMotion: 'reduce' });

await rule('nobody else is asked for anything', 'thirty#/processors/orders?policy=default', async (page) => {
  await page.locator('#simulation table').waitFor();
  const paths = new Set(page.asked.filter((r) => !r.url().startsWith('data:')).map((r) => new URL(r.url())).map((u) => (u.origin === worlds.thirty ? u.pathname : u.href)));
  assert.deepEqual([...paths].sort(), ['/api/dashboard', '/api/processors', '/api/processors/orders/history', '/api/processors/orders/simulation']);
});

const controls = (page) => page.getByRole('region', { name: 'Controls' });

await rule('where the world is not the program\'s to change there are no controls', 'thirty', async (page) => {
  await row(page, 'orders').waitFor();
  assert.equal(await controls(page).count(), 0);
});

await rule('a button changes the world, says what to watch, and undoes it, by keyboard too', 'demo', async (page) => {
  await page.getByRole('button', { name: 'hang the handler of orders' }).press('Enter');
  await controls(page).getByText('Watch orders: stalled within 15 s.').waitFor();
  const undo = page.getByRole('button', { name: 'free the handler of orders' });
  assert.ok(await undo.evaluate((e) => e === document.activeElement));
  await undo.click();
  await controls(page).getByText('Watch orders: LAG drains').waitFor();
  await page.getByRole('button', { name: 'hang the handler of orders' }).waitFor();
});

await rule('what another way switched is shown', 'demo', async (page) => {
  await page.getByRole('button', { name: 'stop the broker' }).waitFor();
  await fetch(worlds.demo + '/api/controls/broker?on=true', { method: 'POST' });
  await page.getByRole('button', { name: 'start the broker again' }).waitFor();
  await fetch(worlds.demo + '/api/controls/broker?on=false', { method: 'POST' });
  await page.getByRole('button', { name: 'stop the broker' }).waitFor();
});

await rule('a page of another origin presses no button', 'demo', async (page) => {
  await page.goto(worlds.thirty + '/api/processors'); // of the same site, and of another port
  await page.evaluate((url) => fetch(url, { method: 'POST', mode: 'no-cors' }), worlds.demo + '/api/controls/hang?on=true');
  const { faults } = await (await fetch(worlds.demo + '/api/controls')).json();
  assert.deepEqual(faults.filter((f) => f.name === 'hang').map((f) => f.on), [false]);
});

for (const viewport of [undefined, phone.viewport]) {
  for (const colorScheme of ['light', 'dark']) {
    await rule(`the controls meet the rules of axe, ${colorScheme}${viewport ? ', and fit a phone' : ''}`, 'demo', async (page) => {
      await page.getByRole('button', { name: 'stop the broker' }).waitFor();
      if (viewport) assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 360);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      assert.deepEqual(violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('\n')), []);
    }, { colorScheme, ...(viewport && { viewport }) });
  }
}

await browser.close();
