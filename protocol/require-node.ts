import { nodeRefusal } from './model/node-version.ts'
import { PRODUCT_VERSION } from './build.ts'

// The first import of every program: what else it imports may need what an older Node does not have.
const refusal = nodeRefusal(process.versions.node)
if (process.argv.slice(2).includes('--version')) {
  process.stdout.write(`larder ${PRODUCT_VERSION} (Node ${process.versions.node})\n`)
  process.exit(0)
}
if (refusal !== undefined) {
  process.stderr.write(`${refusal}\n`)
  process.exit(1)
}
