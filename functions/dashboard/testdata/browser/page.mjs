// What both scripts share: a browser, and pages of it.
import { chromium } from 'playwright-core';

export const [executablePath, given, ...rest] = process.argv.slice(2);
export const worlds = JSON.parse(given);
export const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

export const say = (rule, error) => console.log(JSON.stringify({ rule, error: error ?? '' }));

// open shows an address of a world. Whatever the page complains about is kept in page.complaints.
export async function open(world, hash = '', options = {}) {
  const { query = '', before, ...context } = options;
  const tab = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...context });
  const page = await tab.newPage();
  page.complaints = [];
  page.asked = [];
  page.on('pageerror', (e) => page.complaints.push(String(e)));
  page.on('console', (m) => m.type() === 'error' && page.complaints.push(m.text()));
  page.on('request', (r) => page.asked.push(r));
  if (before) await before(page);
  await page.goto(worlds[world] + '/api/dashboard' + query + hash);
  await page.waitForFunction(() => document.querySelector('#live').textContent !== 'loading …');
  return page;
}

// drawn waits until the charts of a processor are there.
export const drawn = (page) => page.waitForSelector('#slider');
