import { nodeRefusal } from './model/node-version.ts'
import { BUILD, PRODUCT_VERSION } from './build.ts'

// The first import of every program, because later imports may need features that an older Node lacks.
const refusal = nodeRefusal(process.versions.node)
if (process.argv.slice(2).includes('--version')) {
  const origin = BUILD ? '' : 'built without git, '
  process.stdout.write(`larder ${PRODUCT_VERSION} (${origin}Node ${process.versions.node})\n`)
  process.exit(0)
}
if (refusal !== undefined) {
  process.stderr.write(`${refusal}\n`)
  process.exit(1)
}
