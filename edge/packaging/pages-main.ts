import '../../protocol/require-node.ts'
import { buildPages, pages } from './pages.ts'

/** Makes the programs' pages beside the compiled programs; called by `npm run build`, in the repository's folder. */
try {
  await buildPages(process.cwd(), '.build', [...new Set(pages.map(({ workspace }) => workspace))])
} catch (error) {
  process.stderr.write(`larder pages: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}
