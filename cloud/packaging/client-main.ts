import '../../protocol/require-node.ts'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildClient } from './client-package.ts'

const usage = `Usage: npm run client -- [--out DIR]

Makes the package of the client of the HTTP interface, @larder/client, in DIR or in .build/client: npm pack DIR packs it.
`

try {
  const { values } = parseArgs({
    options: { out: { type: 'string', default: '.build/client' }, help: { type: 'boolean', default: false } },
  })
  if (values.help) process.stdout.write(usage)
  else {
    buildClient(process.cwd(), resolve(values.out))
    process.stdout.write(`${resolve(values.out)}\n`)
  }
} catch (error) {
  process.stderr.write(`larder client: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}
