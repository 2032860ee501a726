// Checks queries with Kusto's own parser: reads {"name": "query", ...} from standard input and writes the mistakes, a list of texts; the tests
// in .. run it.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
require('@kusto/language-service-next/bridge.js')
require('@kusto/language-service-next/Kusto.Language.Bridge.js')
const { GlobalState, KustoCode, Symbols } = globalThis.Kusto.Language

// The columns that the queries use, of the tables as Application Insights has them:
// https://learn.microsoft.com/azure/azure-monitor/app/data-model-complete
const tables = {
  traces: '(timestamp: datetime, message: string)',
  requests: '(timestamp: datetime, operation_Name: string, success: bool)',
}
const known = Object.entries(tables).map(([name, columns]) => Symbols.TableSymbol.From(columns).WithName(name))
const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor('insights', known))

const mistakes = []
for (const [name, query] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) {
  const found = KustoCode.ParseAndAnalyze(query, globals).GetDiagnostics()
  for (let i = 0; i < found.Count; i++) {
    const { Message, Start } = found.getItem(i)
    mistakes.push(`${name}:${query.slice(0, Start).split('\n').length}: ${Message}`)
  }
}
process.stdout.write(JSON.stringify(mistakes))
