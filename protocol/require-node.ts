import { nodeRefusal } from './model/node-version.ts'
import { PRODUCT_VERSION } from './build.ts'

// The first import of every program, because later imports may need features that an older Node lacks.
const refusal = nodeRefusal(process.versions.node)
if (process.argv.slice(2).includes('--version')) {
  process.stdout.write(`larder ${PRODUCT_VERSION} (Node ${process.versions.node})\n`)
  process.exit(0)
}
if (refusal !== undefined) {
  process.stderr.write(`${refusal}\n`)
  process.exit(1)
}
