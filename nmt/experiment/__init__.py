"""What one configuration makes: corpora, a model, its training, and a run folder. It joins the layers below, which know
nothing of one another."""
