// Checks dashboards with Grafana's own types: reads {"name": "source", ...} from standard input and writes the mistakes, a list of texts; the
// tests in .. run it, where it is installed.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'

const folder = mkdtempSync('./work-')
const mistakes = []
for (const [name, source] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) {
  // Text is assigned where the types have an enumeration: its values are what counts.
  writeFileSync(`${folder}/dashboard.ts`, `import type { Dashboard } from '@grafana/schema'
type Text<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Text<T[K]> } : T
export const dashboard: Text<Dashboard> = ${source}`)
  const args = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--pretty', 'false', `${folder}/dashboard.ts`]
  const { status, stdout } = spawnSync('node_modules/.bin/tsc', args, { encoding: 'utf8' })
  if (status !== 0) mistakes.push(`${name}: ${stdout}`)
}
rmSync(folder, { recursive: true })
process.stdout.write(JSON.stringify(mistakes))
