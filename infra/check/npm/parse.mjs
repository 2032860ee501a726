// Parses Bicep: reads {"name": "source", ...} from standard input and writes {"name": tree, ...}; the tests in .. run it.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Language, Parser } from 'web-tree-sitter'

await Parser.init()
const parser = new Parser()
parser.setLanguage(await Language.load(fileURLToPath(import.meta.resolve('tree-sitter-bicep/tree-sitter-bicep.wasm'))))

// Named nodes, the word existing, and what does not fit the grammar. Leaves carry their text.
function tree(node, field) {
  const children = []
  for (let i = 0; i < node.childCount; i++) {
    const child = node.child(i)
    if (child.isNamed || child.isError || child.isMissing || child.type === 'existing') children.push(tree(child, node.fieldNameForChild(i)))
  }
  return {
    type: node.type,
    field: field ?? '',
    line: node.startPosition.row + 1,
    broken: node.isError || node.isMissing,
    text: children.length === 0 ? node.text : '',
    children,
  }
}

const trees = {}
for (const [name, source] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) {
  // The grammar has no assignment of a parameter, which reads like a variable.
  const text = name.endsWith('.bicepparam') ? source.replace(/^param(?=\s)/gm, 'var') : source
  trees[name] = tree(parser.parse(text).rootNode)
}
process.stdout.write(JSON.stringify(trees))
