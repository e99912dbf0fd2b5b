import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Deal } from '../../../protocol/contract/deal-objects.ts'
import { address } from './address.ts'
import { Banners } from './banners.tsx'
import { keep, useData } from './data.ts'
import { money } from './format.ts'
import { useHubFacts, useHubs } from './hubs.ts'
import {
  act,
  ActForm,
  Card,
  Field,
  Heading,
  HeldAct,
  HubSelect,
  Input,
  Loaded,
  Nothing,
  type Texts,
} from './parts.tsx'
import { ask, can, imageAt } from './session.ts'
import { counted } from '../../../protocol/model/counted.ts'

/** The deals of a hub: what they ask, what they give, how often they were used. Its banners. */
export function DealsPage(): JSX.Element {
  const hubs = useHubs()
  const hub = Number(address.value.query.get('hub')) || hubs.data?.[0]?.id
  const found = useData(
    () =>
      hub === undefined ? Promise.resolve([]) : ask('GET /deals/hub/{hub_id}', { params: { hub_id: hub } }),
    [hub],
  )
  const products = useProducts(hub)
  const words: DealWords = {
    names: new Map(products.map(({ id, name }) => [id, name])),
    currency: useHubFacts(hub).data?.currency,
  }
  return (
    <>
      <Heading text="Deals and banners" />
      <Card class="mb-3">
        <HubSelect value={hub} />
      </Card>
      <Loaded of={found}>
        {(deals) => (
          <div class="grid gap-3 md:grid-cols-2">
            {deals.length === 0 && (
              <Card>
                <Nothing>No deal yet.</Nothing>
              </Card>
            )}
            {deals.map((deal) => (
              <DealCard key={deal.id} deal={deal} words={words} />
            ))}
          </div>
        )}
      </Loaded>
      {hub !== undefined && can('promotions:write', hub) && <NewDeal hub={hub} products={products} />}
      {hub !== undefined && <Banners hub={hub} />}
    </>
  )
}

/** The use of a deal. Only deals in the window are read: a hub may have hundreds. */
function useUse(id: number, card: { current: Element | null }) {
  const [isInWindow, setInWindow] = useState(false)
  useEffect(() => {
    const observer = new IntersectionObserver((changes) => setInWindow(changes.at(-1)!.isIntersecting))
    observer.observe(card.current!)
    return () => observer.disconnect()
  }, [])
  const { data } = useData(async () => {
    if (!isInWindow) return undefined
    return keep(`use of deal ${id}`, () =>
      ask('GET /deals/{deal_id}/redemptions', { params: { deal_id: id }, query: { limit: 1 } }),
    )
  }, [id, isInWindow])
  const known = useRef(data)
  return (known.current = data ?? known.current)
}

function DealCard({ deal, words }: { deal: Deal; words: DealWords }): JSX.Element {
  const card = useRef<HTMLDivElement>(null)
  const use = useUse(deal.id, card)
  const limits = deal.constraints
    .map((one) => constraintText(one, words))
    .filter((text) => text !== undefined)
  const { id, name, description, display_image, start, end, is_deal_active: isOn } = deal
  const params = { deal_id: id }
  const when = start === null && end === null ? 'always' : `${start ?? 'now'} to ${end ?? 'any day'}`
  return (
    <Card name={`deal-${id}`}>
      <div ref={card} class="flex gap-3">
        {display_image !== null && display_image !== '' && (
          <img src={imageAt(display_image)} alt="" class="h-16 rounded object-cover" />
        )}
        <div class="min-w-0">
          <h2 class="font-semibold break-words">{name}</h2>
          <p class="text-sm quiet">
            {use && `${use.status}, `}
            {when}
            {use &&
              `, used ${use.usage.total}${use.usage.limit === null ? '' : ` of ${use.usage.limit}`} times, ${money(use.total_discount, words.currency)} given`}
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
          <HeldAct
            does="Delete the deal"
            label={`Delete ${name}`}
            run={() => ask('DELETE /deals/{deal_id}', { params })}
          >
            Delete
          </HeldAct>
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
  function create(texts: Texts) {
    const { name = '', product = '', units = '1', percent = '', start = '', end = '' } = texts
    const product_id = product === '' ? null : Number(product)
    return ask('POST /deals/', {
      body: {
        name,
        hub_id: hub,
        start: start === '' ? null : start,
        end: end === '' ? null : end,
        triggers: [{ type: 'QUANTITY', quantity: Number(units), product_id }],
        rewards: [{ type: 'PERCENT_OFF', product_id, discount_pct_or_price: Number(percent) }],
      },
    })
  }
  return (
    <Card title="Create a deal" class="mt-3" name="new">
      <ActForm
        class="grid gap-2 grid-cols-2 lg:grid-cols-4 items-end"
        does={({ name }) => `Create “${name}”`}
        run={create}
      >
        <Input label="Name" name="name" required maxLength={200} />
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
        <Input
          label="From this many units"
          name="units"
          type="number"
          min={1}
          max={1000}
          defaultValue="2"
          required
        />
        <Input label="Percent off" name="percent" type="number" min={1} max={100} required />
        <Input label="First day (optional)" name="start" type="date" />
        <Input label="Last day (optional)" name="end" type="date" />
        <button class="btn btn-primary justify-self-start">Create</button>
      </ActForm>
    </Card>
  )
}

/** Facts of a hub for the texts of its deals. */
interface DealWords {
  /** Names of products by their numbers. */
  names: ReadonlyMap<number, string>
  currency: string | undefined
}

const nameOf = (id: number, { names }: DealWords): string => names.get(id) ?? `product ${id}`

function triggerText(trigger: Deal['triggers'][number], words: DealWords): string {
  const { type, quantity, category, category_id, product_id } = trigger
  const group = category ?? (category_id === null ? 'any product' : `category ${category_id}`)
  const what = product_id === null ? group : nameOf(product_id, words)
  const texts = {
    SPEND: `a cart of ${money(quantity ?? 0, words.currency)}`,
    QUANTITY: `${quantity} × ${what}`,
    CATEGORY: what,
    ALWAYS: 'every cart',
    FIRST_ORDER: 'the first order',
  }
  return texts[type]
}

function rewardText(reward: Deal['rewards'][number], words: DealWords): string {
  const { type, quantity, product_id, discount_pct_or_price: value } = reward
  const what = product_id === null ? 'the cart' : nameOf(product_id, words)
  const on = `${quantity === null ? '' : `${quantity} × `}${what}`
  const texts = {
    FREE_ITEM: `${on} free`,
    PERCENT_OFF: `${value} % off ${on}`,
    AMOUNT_OFF: `${money(value ?? 0, words.currency)} off ${on}`,
    FIXED_PRICE: `${on} for ${money(value ?? 0, words.currency)}`,
    CHEAPEST_FREE: 'the cheapest unit free',
  }
  return texts[type]
}

const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

/** A limit of a deal. Undefined if it limits nothing. */
function constraintText(
  { type, value }: Deal['constraints'][number],
  { currency }: DealWords,
): string | undefined {
  const times = counted(Number(value), 'time')
  const texts = {
    SALEAMT: `from a cart of ${money(Number(value), currency)}`,
    MAXDISCOUNT: `at most ${money(Number(value), currency)} off`,
    MAXUSES: `at most ${times}`,
    MAXUSES_USER: `at most ${times} for each customer`,
    MAXUSES_DEVICE: `at most ${times} for each device`,
    FIRSTORDER: value === '1' ? 'first order only' : undefined,
    STACKABLE: value === '1' ? 'also with other deals' : undefined,
    WEEKDAYS: value
      .split(',')
      .map((day) => days[Number(day) - 1] ?? day)
      .join(', '),
    TIMEWINDOW: value.replace('-', ' to '),
  }
  return texts[type]
}
