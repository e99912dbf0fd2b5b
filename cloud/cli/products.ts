import { progressOn, progressText } from '../../protocol/model/progress.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { requireInService } from '../platform/credentials/hub-access.ts'
import { contextOf, type CommandLine } from './command-line.ts'
import { hubOf, readJsonFile, required } from './options.ts'
import { importProducts, ProductFile } from '../commerce/catalogue/import-products.ts'

const usage = `Usage:
  larder products import --hub HUB --file FILE

Makes what a hub sells and where it stands what a file (JSON) says: a list of
  {"upc", "name", "category", "price", "purchase_price", "facings": [{"cabinet", "shelf", "row"}]}
with "description", "subcategory", "markdown_percent", "image_url", "is_active" and "quantity" where they are wanted. Prices are
cents; the first facing is the primary one; "quantity" is a count of what stands there now. A product is known by its UPC: one
that the hub has is changed, one that the file does not name stays as it is, "is_active": false takes one out of sale. The hub
learns of it at once, or when it returns.`

export const productCommands = (runtime: Runtime): CommandLine => ({
  usage,
  subcommands: {
    import: {
      options: ['hub', 'file'],
      async run({ q, options, db, settings }) {
        const hubId = await hubOf({ q, options })
        await requireInService(q, hubId)
        const entries = readJsonFile(required(options, 'file'), ProductFile)
        const progress = progressOn(process.stderr, runtime.clock)
        const startedAt = runtime.clock.monotonic()
        const show = (done: number): void => {
          const elapsedMs = runtime.clock.monotonic() - startedAt
          progress.show(progressText(done, entries.length, 'products', elapsedMs))
        }
        const imported = await importProducts(
          contextOf({ db, settings }, runtime),
          hubId,
          entries,
          'command line',
          show,
        ).finally(() => progress.clear())
        return { hub_id: hubId, ...imported }
      },
    },
  },
})
