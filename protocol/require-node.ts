import { nodeRefusal } from './model/node-version.ts'

// The first import of every program: what else it imports may need what an older Node does not have.
const refusal = nodeRefusal(process.versions.node)
if (refusal !== undefined) {
  process.stderr.write(`${refusal}\n`)
  process.exit(1)
}
