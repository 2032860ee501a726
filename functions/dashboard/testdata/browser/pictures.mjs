// Takes pictures of the page, for people to look at.
import { browser, drawn, open, rest, say } from './page.mjs';

const [folder] = rest;
const desktop = { width: 1280, height: 800 }, phone = { width: 360, height: 740 };
const pictures = [
  ['list-3', 'three', '', desktop], ['list-30', 'thirty', '', desktop], ['list-500', 'hundreds', '', desktop],
  ['list-30-phone', 'thirty', '', phone], ['orders', 'thirty', '#/processors/orders', desktop, true], ['orders-phone', 'thirty', '#/processors/orders', phone, true],
  ['orders-day', 'thirty', '#/processors/orders?range=24h&policy=keda', desktop, true],
  ['orders-week', 'thirty', '#/processors/orders?range=7d', desktop, true],
  ['group', 'thirty', '#/processors/shop-workers', desktop, true], ['group-phone', 'thirty', '#/processors/shop-workers', phone, true],
  ...['payments', 'audit-archive', 'invoices', 'loyalty', 'carts', 'mail-sender', 'search-index', 'stock', 'telemetry'].map((name) => [name, 'thirty', '#/processors/' + name, desktop, true]),
  ['report', 'thirty', '#/report', desktop], ['report-phone', 'thirty', '#/report', phone], ['list-5000', 'many', '', desktop], ['list-5000-phone', 'many', '', phone],
  ['demo', 'demo', '', desktop], ['demo-phone', 'demo', '', phone],
  ['payments-phone', 'thirty', '#/processors/payments', phone, true],
];
for (const colorScheme of ['light', 'dark']) {
  for (const [name, world, hash, viewport, whole] of pictures) {
    const page = await open(world, hash, { viewport, colorScheme });
    if (hash.startsWith('#/report')) await page.waitForSelector('#ran table');
    else if (!hash && world !== 'demo') await page.waitForSelector('.spark');
    if (whole) await page.waitForSelector('#decisions');
    if (['orders', 'orders-phone'].includes(name)) {
      await drawn(page);
      await page.locator('#decisions button').first().click();
    }
    if (world === 'demo') {
      await page.locator('[data-fault=hang]').click(); // off again in the next picture
      await page.waitForTimeout(1_000);
    }
    if (name === 'orders-day') await page.waitForSelector('#simulation table');
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, fullPage: whole });
    say(name + ' ' + colorScheme, page.complaints.join('\n'));
    await page.context().close();
  }
}
for (const [name, answer] of [['refused', { status: 401, body: '' }], ['down', 'abort']]) {
  const page = await open('thirty', '', {
    viewport: phone, before: (page) => page.route('**/api/processors**', (r) => (answer === 'abort' ? r.abort() : r.fulfill(answer))),
  });
  await page.screenshot({ path: `${folder}/${name}.png` });
  say(name);
  await page.context().close();
}
await browser.close();
