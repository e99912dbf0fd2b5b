/**
 * The products of the demo's hubs: category, subcategory, then `name|price|cost|markdown` (cents, percent).
 */
const assortment: readonly [string, string, string][] = [
  [
    'Drinks',
    'Water',
    'Still Water 500 ml|149|45, Sparkling Water 500 ml|159|50, Lemon Water 500 ml|179|60, Coconut Water|299|140',
  ],
  [
    'Drinks',
    'Soft drinks',
    'Cola 330 ml|189|70, Cola Zero 330 ml|189|70|10, Orange Soda|189|72, Ginger Ale|199|80, Tonic Water|189|75, Root Beer|209|85',
  ],
  [
    'Drinks',
    'Juice',
    'Orange Juice|289|140, Apple Juice|279|130, Carrot Juice|319|160, Tomato Juice|289|135|15, Mango Smoothie|399|210',
  ],
  [
    'Drinks',
    'Coffee and tea',
    'Cold Brew Coffee|349|160, Iced Latte|379|190, Green Tea|249|95, Peach Iced Tea|249|95, Oat Cappuccino|389|200',
  ],
  [
    'Snacks',
    'Crisps',
    'Salted Crisps|199|80, Paprika Crisps|199|80, Tortilla Chips|249|110, Pretzels|189|75, Popcorn|219|85|20, Rice Crackers|229|95',
  ],
  [
    'Snacks',
    'Chocolate',
    'Milk Chocolate|229|100, Dark Chocolate|249|115, Hazelnut Bar|179|70, Caramel Bar|179|70, Peanut Cups|199|85, White Chocolate|229|105|10',
  ],
  [
    'Snacks',
    'Sweets',
    'Gummy Bears|189|70, Mint Drops|129|40, Liquorice|169|65, Chewing Gum|149|50, Fruit Chews|159|55',
  ],
  [
    'Snacks',
    'Nuts and bars',
    'Almonds|349|190, Cashews|369|210, Trail Mix|299|150, Protein Bar|279|140, Granola Bar|189|80, Date Bar|219|100',
  ],
  [
    'Fresh',
    'Sandwiches',
    'Cheese Sandwich|549|280, Ham Sandwich|579|300, Falafel Wrap|629|320, Chicken Wrap|679|350|15, Egg Sandwich|529|260, Caprese Panini|649|330',
  ],
  [
    'Fresh',
    'Salads',
    'Greek Salad|699|360, Caesar Salad|729|380, Quinoa Bowl|799|410, Pasta Salad|629|310, Fruit Salad|499|240',
  ],
  [
    'Fresh',
    'Dairy',
    'Plain Yogurt|249|110, Berry Yogurt|279|125, Cheese Snack|299|150, Chocolate Milk|259|115, Rice Pudding|269|120|25',
  ],
  [
    'Household',
    'Care',
    'Hand Cream|399|170, Lip Balm|299|110, Toothbrush Set|349|140, Tissues|149|45, Plasters|249|90, Wet Wipes|199|70',
  ],
  [
    'Household',
    'Travel',
    'Phone Cable|1299|480, Earphones|1499|600, Umbrella|1199|520, Batteries AA|599|260, Notebook|399|150, Sleep Mask|699|250, Face Masks|299|100',
  ],
]

export interface DemoProduct {
  name: string
  category: string
  subcategory: string
  price: number
  cost: number
  markdown: number
}

export const demoProducts: readonly DemoProduct[] = assortment.flatMap(([category, subcategory, items]) =>
  items.split(', ').map((item) => {
    const [name, price, cost, markdown] = item.split('|')
    return {
      name: name!,
      category,
      subcategory,
      price: Number(price),
      cost: Number(cost),
      markdown: Number(markdown ?? 0),
    }
  }),
)
