import '../../protocol/require-node.ts'
import { writeBuildFile } from './build-file.ts'
import { buildPages, pages } from './pages.ts'

/**
 * Makes the programs' pages and the commit file next to the compiled programs. `npm run build` calls it in
 * the repository's folder.
 */
try {
  if (!writeBuildFile(process.cwd(), '.build'))
    process.stderr.write('larder: no git, so the commit is unknown and the version is 0.0.0+unknown\n')
  await buildPages(process.cwd(), '.build', [...new Set(pages.map(({ workspace }) => workspace))])
} catch (error) {
  process.stderr.write(`larder pages: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}
