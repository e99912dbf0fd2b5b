import { progressOn, progressText } from '../../protocol/model/progress.ts'
import { requireInService } from '../platform/credentials/hub-access.ts'
import { COMMAND_LINE, type CommandLine } from './command-line.ts'
import { hubOf, readJsonFile, required } from './options.ts'
import { importProducts, ProductFile } from '../commerce/catalogue/import-products.ts'

const usage = `Usage:
  larder products import --hub HUB --file FILE

Imports a hub's products, prices and planogram from a JSON file, which is a list of
  {"upc", "name", "category", "price", "purchase_price", "facings": [{"cabinet", "shelf", "row"}]}
Optional: "description", "subcategory", "markdown_percent", "image_url", "is_active" and "quantity". Prices are cents; the
first facing is the primary one; "quantity" is the present count of units. The UPC identifies a product. The import changes
products that the hub has. Products that the file does not name stay as they are.
"is_active": false ends the sale of a product. The hub receives the change at once, or when it connects again.`

export const productCommands: CommandLine = {
  usage,
  subcommands: {
    import: {
      options: ['hub', 'file'],
      async run({ q, options, context, runtime }) {
        const hubId = await hubOf({ q, options })
        await requireInService(q, hubId)
        const entries = readJsonFile(required(options, 'file'), ProductFile)
        const progress = progressOn(process.stderr, runtime.clock)
        const startedAt = runtime.clock.monotonic()
        const show = (done: number): void => {
          const elapsedMs = runtime.clock.monotonic() - startedAt
          progress.show(progressText(done, entries.length, 'products', elapsedMs))
        }
        const imported = await importProducts(context, hubId, entries, COMMAND_LINE, show).finally(() =>
          progress.clear(),
        )
        return { hub_id: hubId, ...imported }
      },
    },
  },
}
