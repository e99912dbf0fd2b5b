import type { JSX } from 'preact'
import type { Deal } from '../../../protocol/contract/deal-objects.ts'
import { textsOf } from '../../../protocol/ui/form.ts'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { address, setQuery } from './address.ts'
import { Banners } from './banners.tsx'
import { useData } from './data.ts'
import { constraintText, type DealWords, rewardText, triggerText } from './deal-words.ts'
import { money } from './format.ts'
import { useHubFacts, useHubs } from './hubs.ts'
import { act, Card, Field, Heading, HubSelect, Loaded, Nothing } from './parts.tsx'
import { ask, can, imageAt } from './session.ts'

/** The deals of a hub: what they ask, what they give, how often they were used. Its banners. */
export function DealsPage(): JSX.Element {
  const hubs = useHubs()
  const hub = Number(address.value.query.get('hub')) || hubs.data?.[0]?.id
  const found = useData(async () => {
    if (hub === undefined) return []
    const deals = await ask('GET /deals/hub/{hub_id}', { params: { hub_id: hub } })
    return Promise.all(
      deals.map(async (deal) => ({
        deal,
        use: await ask('GET /deals/{deal_id}/redemptions', {
          params: { deal_id: deal.id },
          query: { limit: 1 },
        }),
      })),
    )
  }, [hub])
  const products = useProducts(hub)
  const words: DealWords = {
    names: new Map(products.map(({ id, name }) => [id, name])),
    currency: useHubFacts(hub).data?.currency,
  }
  return (
    <>
      <Heading text="Deals and banners" />
      <Card class="mb-3">
        <HubSelect value={hub} onPick={(id) => setQuery({ hub: String(id ?? '') })} />
      </Card>
      <Loaded of={found}>
        {(deals) => (
          <div class="grid gap-3 md:grid-cols-2">
            {deals.length === 0 && (
              <Card>
                <Nothing>No deal yet.</Nothing>
              </Card>
            )}
            {deals.map(({ deal, use }) => (
              <DealCard
                key={deal.id}
                deal={deal}
                words={words}
                state={use.status}
                uses={`used ${use.usage.total}${use.usage.limit === null ? '' : ` of ${use.usage.limit}`} times, ${money(use.total_discount, words.currency)} given`}
              />
            ))}
          </div>
        )}
      </Loaded>
      {hub !== undefined && can('promotions:write', hub) && <NewDeal hub={hub} products={products} />}
      {hub !== undefined && <Banners hub={hub} />}
    </>
  )
}

interface DealProps {
  deal: Deal
  state: string
  uses: string
  words: DealWords
}

function DealCard({ deal, state, uses, words }: DealProps): JSX.Element {
  const limits = deal.constraints
    .map((one) => constraintText(one, words))
    .filter((text) => text !== undefined)
  const { id, name, description, display_image, start, end, is_deal_active: isOn } = deal
  const params = { deal_id: id }
  const when = start === null && end === null ? 'always' : `${start ?? 'now'} to ${end ?? 'any day'}`
  return (
    <Card name={`deal-${id}`}>
      <div class="flex gap-3">
        {display_image !== null && display_image !== '' && (
          <img src={imageAt(display_image)} alt="" class="h-16 rounded object-cover" />
        )}
        <div class="min-w-0">
          <h2 class="font-semibold break-words">{name}</h2>
          <p class="text-sm quiet">
            {state}, {when}, {uses}
          </p>
        </div>
      </div>
      {description !== null && <p class="break-words">{description}</p>}
      <p>
        For {deal.triggers.map((one) => triggerText(one, words)).join(' and ')}:{' '}
        {deal.rewards.map((one) => rewardText(one, words)).join(', ')}
        {limits.length > 0 && <span class="quiet"> ({limits.join(', ')})</span>}
      </p>
      {can('promotions:write') && (
        <div class="flex flex-wrap gap-2 mt-2">
          <button
            class="btn btn-sm"
            onClick={() =>
              void act(isOn ? 'Switch it off' : 'Switch it on', () =>
                ask('PUT /deals/{deal_id}', { params, body: { is_deal_active: !isOn } }),
              )
            }
          >
            {isOn ? 'Switch off' : 'Switch on'}
            <span class="sr-only"> {name}</span>
          </button>
          <HoldButton
            class="btn-sm min-h-9"
            label={`Delete ${name}`}
            onHeld={() => void act('Delete the deal', () => ask('DELETE /deals/{deal_id}', { params }))}
          >
            Delete
          </HoldButton>
        </div>
      )}
    </Card>
  )
}

interface Named {
  id: number
  name: string
}

/** The products of a hub, if the role includes them. */
function useProducts(hub: number | undefined): readonly Named[] {
  const { data } = useData(
    () =>
      hub !== undefined && can('inventory:read', hub)
        ? ask('GET /owners/hub_inventory/', { query: { hub_id: hub } })
        : Promise.resolve([]),
    ['products', hub],
  )
  return data ?? []
}

/** A deal of one trigger and one reward: a percentage off a product, a category or the cart. */
function NewDeal({ hub, products }: { hub: number; products: readonly Named[] }): JSX.Element {
  function create(event: SubmitEvent): void {
    const { name = '', product = '', units = '1', percent = '', start = '', end = '' } = textsOf(event)
    const form = event.currentTarget as HTMLFormElement
    const product_id = product === '' ? null : Number(product)
    void act(`Create “${name}”`, async () => {
      await ask('POST /deals/', {
        body: {
          name,
          hub_id: hub,
          start: start === '' ? null : start,
          end: end === '' ? null : end,
          triggers: [{ type: 'QUANTITY', quantity: Number(units), product_id }],
          rewards: [{ type: 'PERCENT_OFF', product_id, discount_pct_or_price: Number(percent) }],
        },
      })
      form.reset()
    })
  }
  return (
    <Card title="Create a deal" class="mt-3" name="new">
      <form class="grid gap-2 grid-cols-2 lg:grid-cols-4 items-end" onSubmit={create}>
        <Field label="Name">
          <input name="name" class="input w-full" required maxLength={200} />
        </Field>
        <Field label="Product">
          <select name="product" class="select w-full">
            <option value="">The whole cart</option>
            {products.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </Field>
        <Field label="From this many units">
          <input
            name="units"
            type="number"
            min={1}
            max={1000}
            defaultValue="2"
            class="input w-full"
            required
          />
        </Field>
        <Field label="Percent off">
          <input name="percent" type="number" min={1} max={100} class="input w-full" required />
        </Field>
        <Field label="First day (optional)">
          <input name="start" type="date" class="input w-full" />
        </Field>
        <Field label="Last day (optional)">
          <input name="end" type="date" class="input w-full" />
        </Field>
        <button class="btn btn-primary justify-self-start">Create</button>
      </form>
    </Card>
  )
}
